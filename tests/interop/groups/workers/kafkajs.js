// A member by kafkajs: the classic protocol. Its journal: tests/interop/groups/journal.py.
const fs = require('fs')
const { Kafka, AssignerProtocol, logLevel } = require('kafkajs')

const asked = JSON.parse(process.argv[2])
const now = () => Number(process.hrtime.bigint() / 1000n) / 1000
const write = (event, what) => fs.writeSync(1, JSON.stringify({ at: now(), event, ...what }) + '\n')

// kafkajs has no assignor of Kafka's own names: this is "range", as its users write theirs.
const Range = ({ cluster }) => ({
  name: 'range',
  version: 0,
  protocol: ({ topics }) => ({
    name: 'range',
    metadata: AssignerProtocol.MemberMetadata.encode({ version: 0, topics, userData: Buffer.alloc(0) })
  }),
  assign: async ({ members, topics }) => {
    const ids = members.map(member => member.memberId).sort()
    const shares = Object.fromEntries(ids.map(id => [id, {}]))
    for (const topic of topics) {
      const count = cluster.findTopicPartitionMetadata(topic).length
      ids.forEach((id, slot) => {
        const first = Math.ceil(count * slot / ids.length)
        const end = Math.ceil(count * (slot + 1) / ids.length)
        shares[id][topic] = Array.from({ length: end - first }, (_, each) => first + each)
      })
    }
    return ids.map(memberId => ({
      memberId,
      memberAssignment: AssignerProtocol.MemberAssignment.encode({
        version: 0, assignment: shares[memberId], userData: Buffer.alloc(0)
      })
    }))
  }
})

const REFUSALS = ['ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID', 'REBALANCE_IN_PROGRESS', 'FENCED_INSTANCE_ID']
let held = []
let commits = 0
let stopping = false
let busy = Promise.resolve()

function gone (event) {
  if (held.length) write(event, { partitions: held })
  held = []
}

async function commit (offset, batch, commitOffsetsIfNecessary) {
  const id = ++commits
  const { topic, partition } = batch
  write('committing', { id, offsets: [[topic, partition, offset]] })
  try {
    await commitOffsetsIfNecessary({ topics: [{ topic, partitions: [{ partition, offset: String(offset) }] }] })
  } catch (error) {
    if (REFUSALS.includes(error.type)) write('refused', { id, error: error.type })
    throw error
  }
  write('committed', { id })
}

async function eachBatch ({ batch, resolveOffset, heartbeat, commitOffsetsIfNecessary }) {
  for (let at = 0; at < batch.messages.length && !stopping; at += 20) {
    const some = batch.messages.slice(at, at + 20)
    const [first, last] = [Number(some[0].offset), Number(some[some.length - 1].offset)]
    write('records', { partition: [batch.topic, batch.partition], first, last })
    await commit(last + 1, batch, commitOffsetsIfNecessary)
    resolveOffset(String(last))
    await heartbeat()
  }
}

let consumer

// kafkajs fails when a connection is lost during its start: restart, as a supervisor would.
async function join () {
  try {
    await consume()
  } catch (error) {
    if (!error.retriable) throw error
    again(error)
  }
}

function again (error) {
  console.error(error)
  gone('lost')
  if (!stopping) setTimeout(join, 200)
}

async function consume () {
  const kafka = new Kafka({
    clientId: 'kafkajs',
    brokers: [asked.address],
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 100, maxRetryTime: 500, retries: 60 }
  })
  consumer = kafka.consumer({
    groupId: asked.group,
    sessionTimeout: asked.session_ms,
    rebalanceTimeout: 3 * asked.session_ms,
    heartbeatInterval: asked.heartbeat_ms,
    maxWaitTimeInMs: 100,
    metadataMaxAge: 1000,
    partitionAssigners: [Range]
  })
  await consumer.connect()
  await consumer.subscribe({ topics: asked.topics, fromBeginning: true })
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    if (!payload.restart) again(payload.error)
  })
  consumer.on(consumer.events.REBALANCING, () => gone('revoked'))
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    gone('lost') // a join without a rebalance: the member was expelled
    held = Object.entries(payload.memberAssignment)
      .flatMap(([topic, partitions]) => partitions.map(partition => [topic, partition]))
    write('assigned', { partitions: held })
  })
  await consumer.run({
    autoCommit: false,
    eachBatchAutoResolve: false,
    eachBatch: payload => (busy = eachBatch(payload))
  })
}

process.on('SIGTERM', async () => {
  stopping = true
  await busy.catch(() => {})
  gone('revoked')
  await consumer.disconnect()
  write('closed')
  process.exit(0)
})

join().catch(error => { console.error(error); process.exit(1) })
