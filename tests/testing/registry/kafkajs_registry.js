// Registers a schema, writes a record with it and reads the record back, with kafkajs and its
// client of schema registries. Argument: {"address", "registry", "schema"} as JSON.
const { Kafka, logLevel } = require('kafkajs')
const { SchemaRegistry, SchemaType } = require('@kafkajs/confluent-schema-registry')

async function main({ address, registry, auth }) {
  const client = new SchemaRegistry({ host: registry, auth })
  const kafka = new Kafka({ brokers: address.split(','), logLevel: logLevel.ERROR })
  const answers = {}
  const kinds = {
    AVRO: [SchemaType.AVRO, '{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":"string"}]}'],
    JSON: [SchemaType.JSON, '{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}'],
    PROTOBUF: [SchemaType.PROTOBUF, 'syntax = "proto3"; package n; message R { string a = 1; }'],
  }
  const producer = kafka.producer()
  await producer.connect()
  const ids = {}
  for (const [name, [type, schema]] of Object.entries(kinds)) {
    const { id } = await client.register({ type, schema }, { subject: `js-${name}-value` })
    ids[name] = id
    const value = await client.encode(id, { a: name })
    await producer.send({ topic: 'js', messages: [{ value }] })
  }
  await producer.disconnect()
  answers.latest = await client.getLatestSchemaId('js-AVRO-value')
  answers.found = await client.getRegistryIdBySchema('js-AVRO-value', { type: SchemaType.AVRO, schema: kinds.AVRO[1] })
  answers.ids = ids
  try {
    await client.register(
      { type: SchemaType.AVRO, schema: '{"type":"record","name":"R","namespace":"n","fields":[{"name":"b","type":"int"}]}' },
      { subject: 'js-AVRO-value' },
    )
  } catch (error) {
    answers.refused = error.message
  }
  answers.values = await new Promise(async (resolve, reject) => {
    const values = []
    const consumer = kafka.consumer({ groupId: 'g' })
    await consumer.connect()
    await consumer.subscribe({ topic: 'js', fromBeginning: true })
    await consumer.run({
      eachMessage: async ({ message }) => {
        values.push((await new SchemaRegistry({ host: registry, auth }).decode(message.value)).a)
        if (values.length === 3) setTimeout(() => consumer.disconnect().then(() => resolve(values), reject), 0)
      },
    })
  })
  console.log(JSON.stringify(answers))
}

main(JSON.parse(process.argv[2])).catch((error) => {
  console.error(error)
  process.exit(1)
})
