// One command from standard input, its answer as JSON on standard output.
const { Kafka, CompressionTypes, CompressionCodecs, logLevel } = require('kafkajs')
const Cluster = require('kafkajs/src/cluster')
const SnappyJS = require('snappyjs')
const lz4 = require('lz4-napi')
const { decompress: unzstd } = require('fzstd')

// kafkajs brings gzip; the other codecs are plugged in as its users do.
const XERIAL = Buffer.from('82534e4150505900', 'hex')
CompressionCodecs[CompressionTypes.Snappy] = () => ({
  compress: async encoder => Buffer.from(SnappyJS.compress(encoder.buffer)),
  decompress: async buffer => {
    if (!buffer.subarray(0, 8).equals(XERIAL)) return Buffer.from(SnappyJS.uncompress(buffer))
    const parts = []
    for (let at = 16; at < buffer.length;) {
      const size = buffer.readUInt32BE(at)
      parts.push(Buffer.from(SnappyJS.uncompress(buffer.subarray(at + 4, at + 4 + size))))
      at += 4 + size
    }
    return Buffer.concat(parts)
  }
})
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: async encoder => lz4.compressFrameSync(encoder.buffer),
  decompress: async buffer => lz4.decompressFrameSync(buffer)
})
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async () => { throw new Error('reads zstd only') },
  decompress: async buffer => Buffer.from(unzstd(buffer))
})
const TYPES = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4
}

const bytes = text => (text === null ? null : Buffer.from(text, 'base64'))
const text = data => (data === null || data === undefined ? null : data.toString('base64'))

async function main (command) {
  const kafka = new Kafka({ clientId: 'test', brokers: [command.address], logLevel: logLevel.ERROR })
  const { topic } = command
  if (command.op === 'create') {
    const admin = kafka.admin()
    await admin.connect()
    await admin.createTopics({ topics: [{ topic, numPartitions: command.partitions }] })
    await admin.disconnect()
    return true
  }
  if (command.op === 'produce') {
    const producer = kafka.producer({ allowAutoTopicCreation: false })
    await producer.connect()
    const messages = command.messages.map(m => ({
      key: bytes(m.key),
      value: bytes(m.value),
      partition: 0,
      timestamp: m.timestamp,
      headers: Object.fromEntries(m.headers.map(([name, value]) => [name, bytes(value)]))
    }))
    const compression = TYPES[command.codec]
    await producer.send({ topic, messages, acks: command.acks, compression })
    await producer.disconnect()
    return true
  }
  if (command.op === 'consume') return consume(kafka, command.address, topic, command.count)
  const admin = kafka.admin()
  await admin.connect()
  const found = command.timestamp < 0
    ? await admin.fetchTopicOffsets(topic)
    : await admin.fetchTopicOffsetsByTimestamp(topic, command.timestamp)
  await admin.disconnect()
  const row = found.find(each => each.partition === 0)
  return command.timestamp === -2 ? row.low : row.offset
}

async function consume (kafka, address, topic, count) {
  const { broker, close } = await leader(kafka, address, topic)
  const rows = []
  while (rows.length < count) {
    const answer = await broker.fetch({
      replicaId: -1,
      maxWaitTime: 5000,
      minBytes: 1,
      maxBytes: 10485760,
      isolationLevel: 1,
      topics: [{ topic, partitions: [{ partition: 0, fetchOffset: String(rows.length), maxBytes: 1048576 }] }]
    })
    const before = rows.length
    for (const message of answer.responses[0].partitions[0].messages) {
      if (Number(message.offset) < before) continue
      rows.push({
        offset: message.offset,
        timestamp: message.timestamp,
        key: text(message.key),
        value: text(message.value),
        headers: Object.entries(message.headers || {}).map(([name, value]) => [name, text(value)])
      })
    }
    if (rows.length === before) throw new Error(`${rows.length} of ${count} records`)
  }
  await close()
  return rows.slice(0, count)
}

// kafkajs has no consumer without a group; the objects below its consumer fetch by partition.
async function leader (kafka, address, topic) {
  const socketFactory = ({ host, port, onConnect }) => {
    const socket = require('net').connect({ host, port }, onConnect)
    socket.setKeepAlive(true, 60000)
    return socket
  }
  const cluster = new Cluster({
    logger: kafka.logger(),
    socketFactory,
    brokers: [address],
    clientId: 'test',
    connectionTimeout: 5000,
    authenticationTimeout: 5000,
    requestTimeout: 30000,
    metadataMaxAge: 300000,
    allowAutoTopicCreation: false,
    maxInFlightRequests: null,
    isolationLevel: 1,
    retry: { retries: 5 },
    offsets: new Map()
  })
  await cluster.connect()
  await cluster.addTargetTopic(topic)
  const leaders = cluster.findLeaderForPartitions(topic, [0])
  const broker = await cluster.findBroker({ nodeId: Object.keys(leaders)[0] })
  return { broker, close: () => cluster.disconnect() }
}

const chunks = []
process.stdin.on('data', chunk => chunks.push(chunk))
process.stdin.on('end', () => {
  const command = JSON.parse(Buffer.concat(chunks).toString())
  main(command).then(
    answer => { process.stdout.write(JSON.stringify(answer)); process.exitCode = 0 },
    error => { console.error(error); process.exitCode = 1 }
  )
})
