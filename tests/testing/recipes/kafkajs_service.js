// A service with kafkajs, and the test's calls of the control door.
const { Kafka, logLevel } = require("kafkajs");

const [, , door, brokers, story] = process.argv;

async function call(path, given = {}) {
  const answer = await fetch(`${door}/v1/${path}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(given),
  });
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.message);
  return found.value;
}

async function main() {
  const kafka = new Kafka({
    brokers: brokers.split(","),
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 20, retries: 50, maxRetryTime: 200 },
  });
  const producer = kafka.producer();
  await producer.connect();
  const send = (value) => producer.send({ topic: "orders", messages: [{ value }] });
  await send("1");
  if (story === "restart") {
    await call("broker/kill", { node_id: 1 });
    const sent = send("2");
    await call("broker/start", { node_id: 1 });
    await sent;
  } else if (story === "full") {
    await call("broker/disk/fill", { node_id: 1 });
    const sent = send("2");
    await call("broker/disk/free", { node_id: 1 });
    await sent;
  } else {
    const answer = await fetch(`${door}/v1/partition/leader?topic=orders&partition=0`);
    const leader = (await answer.json()).value;
    const target = (leader % 3) + 1;
    await call("partition/move_to", { topic: "orders", partition: 0, node_id: target });
    await send("2");
  }
  await producer.disconnect();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
