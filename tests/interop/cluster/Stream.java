import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** A producer or a group member with Apache Kafka's own clients: see streamers.py. */
public final class Stream {
    private static final int PARTITIONS = 3;
    private static volatile boolean ended;

    public static void main(String[] arguments) {
        var watch =
            new Thread(
                () -> {
                    try {
                        System.in.readAllBytes();
                    } catch (java.io.IOException error) {
                        say("error " + error);
                    }
                    ended = true;
                });
        watch.setDaemon(true);
        watch.start();
        try {
            if (arguments[0].equals("produce")) {
                produce(arguments[1], arguments[2]);
            } else {
                consume(arguments[1], arguments[2]);
            }
        } catch (Exception error) {
            say("error " + error);
            System.exit(1);
        }
    }

    private static synchronized void say(String line) {
        System.out.println(line.replace('\n', ' '));
        System.out.flush();
    }

    private static void produce(String address, String topic) throws InterruptedException {
        var settings = new Properties();
        settings.put("bootstrap.servers", address);
        try (var producer =
            new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (int each = 0; !ended; each++) {
                int number = each;
                var record =
                    new ProducerRecord<String, String>(
                        topic, number % PARTITIONS, null, Integer.toString(number));
                producer.send(
                    record,
                    (at, error) ->
                        say(
                            error != null
                                ? "error " + error
                                : "acked " + number + " " + at.partition() + " " + at.offset()));
                Thread.sleep(30);
            }
        }
    }

    private static void consume(String address, String topic) {
        var settings = new Properties();
        settings.put("bootstrap.servers", address);
        settings.put("group.id", topic);
        settings.put("auto.offset.reset", "earliest");
        try (var consumer =
            new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            while (!ended) {
                for (var record : consumer.poll(Duration.ofMillis(100))) {
                    say("read " + record.partition() + " " + record.offset() + " " + record.value());
                }
            }
        }
    }
}
