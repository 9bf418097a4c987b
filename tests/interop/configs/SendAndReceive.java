import java.io.FileReader;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Sends and receives one record: property files of producer, consumer and admin; a topic. */
public final class SendAndReceive {
    private static Properties read(String path) throws Exception {
        var properties = new Properties();
        try (var reader = new FileReader(path)) {
            properties.load(reader);
        }
        return properties;
    }

    public static void main(String[] arguments) throws Exception {
        String topic = arguments[3];
        try (var admin = Admin.create(read(arguments[2]))) {
            admin.describeTopics(List.of(topic)).allTopicNames().get();
        }
        try (var producer = new KafkaProducer<String, String>(read(arguments[0]))) {
            producer.send(new ProducerRecord<>(topic, "from java")).get();
        }
        try (var consumer = new KafkaConsumer<String, String>(read(arguments[1]))) {
            consumer.subscribe(List.of(topic));
            while (true) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofSeconds(1))) {
                    System.out.println(record.value());
                    return;
                }
            }
        }
    }
}
