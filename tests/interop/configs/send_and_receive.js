// Sends and receives one record: the settings as JSON, by role; a topic.
const { Kafka, logLevel } = require('kafkajs')

async function main (settings, topic) {
  const { client, producer, consumer, admin } = JSON.parse(settings)
  const kafka = new Kafka({ ...client, logLevel: logLevel.NOTHING })
  const asking = kafka.admin(admin)
  await asking.connect()
  if (!(await asking.listTopics()).includes(topic)) throw new Error('no topic')
  await asking.disconnect()
  const sender = kafka.producer(producer)
  await sender.connect()
  await sender.send({ topic, messages: [{ value: 'from kafkajs' }] })
  await sender.disconnect()
  const receiver = kafka.consumer(consumer)
  await receiver.connect()
  await receiver.subscribe({ topics: [topic], fromBeginning: true })
  await receiver.run({
    eachMessage: async ({ message }) => {
      console.log(message.value.toString())
      process.exit(0)
    }
  })
}

main(...process.argv.slice(2)).catch(error => { console.error(error); process.exit(1) })
