// Sets a fault at a control door, produces through it, and prints what the door saw.
// Arguments: the URL of the door, a topic.
const { Kafka, logLevel } = require("kafkajs");

const [url, topic] = process.argv.slice(2);

async function call(path, body) {
  const answer = await fetch(`${url}/v1/${path}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  const found = await answer.json();
  if (!answer.ok) throw new Error(`${path}: ${found.error}: ${found.message}`);
  return found.value;
}

async function main() {
  const servers = (await (await fetch(`${url}/v1/bootstrap_servers`)).json()).value;
  const fault = await call("fault/add", {
    apis: ["Produce"],
    topic,
    error: "NOT_ENOUGH_REPLICAS",
    times: 2,
  });
  const assertion = await call("assert_produces/begin", { topic, count: 1 });

  const kafka = new Kafka({
    brokers: servers.split(","),
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 10 },
  });
  const producer = kafka.producer();
  await producer.connect();
  await producer.send({ topic, messages: [{ value: "from kafkajs" }] });
  await producer.disconnect();

  const records = await call("assert_produces/end", { id: assertion["@kept"] });
  await call("fault/wait", { id: fault["@kept"], n: 2 });
  const answer = await fetch(`${url}/v1/fault/hits?id=${fault["@kept"]}`);
  const hits = (await answer.json()).value;
  await call("fault/end", { id: fault["@kept"] });
  const misspelt = await call("fault/add", { apis: ["Prodcue"], error: "NOT_COORDINATOR" }).catch(
    (error) => error.message.includes("did you mean 'Produce'"),
  );
  console.log(hits, records.length, records[0].value["@text"], misspelt);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
