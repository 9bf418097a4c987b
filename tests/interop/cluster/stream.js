// A producer or a group member with kafkajs: see streamers.py.
const { Kafka, Partitioners, logLevel } = require('kafkajs')

const PARTITIONS = 3
const UNANSWERED_MAX = 20 // it has no batches: each record is a request
let ended = false
let end
const atEnd = new Promise(resolve => { end = () => { ended = true; resolve() } })
process.stdin.on('end', () => end())
process.stdin.resume()

const say = (...words) => process.stdout.write(words.join(' ').replace(/\n/g, ' ') + '\n')
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))

async function produce (kafka, topic) {
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  const waiting = new Set()
  for (let number = 0; !ended; number++) {
    const partition = number % PARTITIONS
    const sent = producer.send({ topic, acks: -1, messages: [{ value: String(number), partition }] })
      .then(([at]) => say('acked', number, at.partition, at.baseOffset))
      .catch(error => say('error', error))
      .finally(() => waiting.delete(sent))
    waiting.add(sent)
    do await sleep(30)
    while (waiting.size >= UNANSWERED_MAX)
  }
  await Promise.all(waiting)
  await producer.disconnect()
}

async function consume (kafka, topic) {
  const consumer = kafka.consumer({ groupId: topic, maxWaitTimeInMs: 100 })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  // kafkajs also reports errors after which it restarts by itself, such as a missing coordinator.
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    if (!payload.restart) say('error', payload.error)
  })
  await consumer.run({
    eachMessage: async ({ partition, message }) => {
      say('read', partition, message.offset, message.value)
    }
  })
  await atEnd
  await consumer.disconnect()
}

async function main (role, address, topic) {
  const kafka = new Kafka({
    clientId: 'stream', brokers: address.split(','), logLevel: logLevel.NOTHING
  })
  await (role === 'produce' ? produce : consume)(kafka, topic)
  process.exit(0)
}

main(...process.argv.slice(2)).catch(error => { say('error', error); process.exit(1) })
