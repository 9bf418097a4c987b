// The copier with kafkajs: address, source, target, number of records.
const { Kafka, logLevel } = require('kafkajs')

const CHUNK = 10
const GIVES_UP = 5

async function main (address, source, target, count) {
  const kafka = new Kafka({ clientId: 'copier', brokers: address.split(','), logLevel: logLevel.NOTHING })
  const producer = kafka.producer({
    transactionalId: target, idempotent: true, maxInFlightRequests: 1
  })
  const consumer = kafka.consumer({
    groupId: target, sessionTimeout: 1000, heartbeatInterval: 200, maxWaitTimeInMs: 100
  })
  await producer.connect()
  // kafkajs cannot fetch stable offsets (KIP-447): a position may be older than a running commit.
  // Beginning a transaction of the same id waits for that commit, and each join fetches again.
  await (await producer.transaction()).abort()
  let joins = 0
  consumer.on(consumer.events.GROUP_JOIN, () => { if (joins++) process.exit(1) })
  await consumer.connect()
  await consumer.subscribe({ topics: [source], fromBeginning: true })
  let attempt = 0
  consumer.on(consumer.events.CRASH, () => process.exit(1))
  await consumer.run({
    autoCommit: false,
    eachBatchAutoResolve: false,
    eachBatch: async ({ batch, resolveOffset, heartbeat }) => {
      let messages = batch.messages
      while (messages.length) {
        attempt++
        const chunk = messages.slice(0, CHUNK)
        const following = (BigInt(chunk[chunk.length - 1].offset) + 1n).toString()
        const transaction = await producer.transaction()
        await transaction.send({
          topic: target, messages: chunk.map(m => ({ value: m.value, partition: 0 }))
        })
        await transaction.sendOffsets({
          consumerGroupId: target,
          topics: [{ topic: source, partitions: [{ partition: 0, offset: following }] }]
        })
        if (attempt % GIVES_UP === 0) {
          await transaction.abort()
        } else {
          await transaction.commit()
          resolveOffset(chunk[chunk.length - 1].offset)
          messages = messages.slice(CHUNK)
          if (BigInt(following) >= BigInt(count)) process.exit(0)
        }
        await heartbeat()
        await new Promise(resolve => setTimeout(resolve, 20))
      }
    }
  })
  const admin = kafka.admin()
  await admin.connect()
  const [{ partitions: [{ offset }] }] = await admin.fetchOffsets({
    groupId: target, topics: [source]
  })
  if (Number(offset) >= Number(count)) process.exit(0)
}

process.on('unhandledRejection', error => { console.error(error); process.exit(1) })
main(...process.argv.slice(2)).catch(error => { console.error(error); process.exit(1) })
