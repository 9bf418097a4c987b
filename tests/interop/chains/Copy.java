import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The copier with Apache Kafka's own clients: address, source, target, number of records. */
public final class Copy {
    private static final int CHUNK = 10;
    private static final int GIVES_UP = 5;

    public static void main(String[] arguments) throws Exception {
        String source = arguments[1];
        String target = arguments[2];
        long count = Long.parseLong(arguments[3]);
        var settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("transactional.id", target);
        settings.put("max.block.ms", "10000");
        var reads = new Properties();
        reads.put("bootstrap.servers", arguments[0]);
        reads.put("group.id", target);
        reads.put("enable.auto.commit", "false");
        reads.put("auto.offset.reset", "earliest");
        reads.put("isolation.level", "read_committed");
        reads.put("session.timeout.ms", "1000");
        reads.put("heartbeat.interval.ms", "200");
        reads.put("max.poll.records", Integer.toString(CHUNK));
        var place = new TopicPartition(source, 0);
        try (var producer =
                new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
            var consumer =
                new KafkaConsumer<>(
                    reads, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            producer.initTransactions();
            consumer.subscribe(List.of(source));
            int attempt = 0;
            while (!consumer.assignment().contains(place) || consumer.position(place) < count) {
                var found = consumer.poll(Duration.ofMillis(200));
                if (found.isEmpty()) {
                    continue;
                }
                attempt++;
                long first = -1;
                long following = -1;
                producer.beginTransaction();
                for (ConsumerRecord<byte[], byte[]> record : found) {
                    producer.send(new ProducerRecord<>(target, 0, null, record.value()));
                    first = first < 0 ? record.offset() : first;
                    following = record.offset() + 1;
                }
                producer.sendOffsetsToTransaction(
                    Map.of(place, new OffsetAndMetadata(following)), consumer.groupMetadata());
                if (attempt % GIVES_UP == 0) {
                    producer.abortTransaction();
                    consumer.seek(place, first);
                } else {
                    producer.commitTransaction();
                }
                Thread.sleep(20);
            }
        }
    }
}
