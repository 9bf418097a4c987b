import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Scanner;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/** Reads groups, one a line as groups.py writes them; writes what Kafka's assignors make of them. */
public class AskAssignors {
    public static void main(String[] args) {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String[] parts = lines.nextLine().split(" ");
            Cluster cluster = cluster(parts[0]);
            List<String> answers = new ArrayList<>();
            for (ConsumerPartitionAssignor assignor : List.of(new RangeAssignor(),
                    new RoundRobinAssignor(), new StickyAssignor(), new CooperativeStickyAssignor()))
                answers.add(answer(assignor, cluster, parts[1]));
            System.out.println(String.join(" ", answers));
        }
    }

    private static Cluster cluster(String topics) {
        Map<String, Node> nodes = new TreeMap<>();
        List<PartitionInfo> partitions = new ArrayList<>();
        for (String topic : topics.split(",")) {
            String[] named = topic.split(":");
            int number = 0;
            for (String racks : split(named[1])) {
                Node[] replicas = racks.chars().mapToObj(letter -> nodes.computeIfAbsent(
                    Character.toString(letter), rack -> new Node(letter, "host", 1,
                        rack.equals("0") ? null : rack))).toArray(Node[]::new);
                partitions.add(
                    new PartitionInfo(named[0], number++, replicas[0], replicas, replicas));
            }
        }
        return new Cluster("cluster", nodes.values(), partitions, Set.of(), Set.of());
    }

    private static String answer(
            ConsumerPartitionAssignor assignor, Cluster cluster, String members) {
        Map<String, Subscription> asked = new HashMap<>();
        for (String member : members.split(",")) {
            String[] field = member.split(";");
            int generation = Integer.parseInt(field[3]);
            List<TopicPartition> owned = split(field[5]).stream().map(AskAssignors::partition).toList();
            boolean isSticky = assignor instanceof StickyAssignor && !owned.isEmpty();
            Subscription subscription = new Subscription(split(field[4]),
                isSticky ? claim(owned, generation) : null,
                assignor instanceof CooperativeStickyAssignor ? owned : List.of(), generation,
                field[2].equals("-") ? Optional.empty() : Optional.of(field[2]));
            if (!field[1].equals("-"))
                subscription.setGroupInstanceId(Optional.of(field[1]));
            asked.put(field[0], subscription);
        }
        Map<String, Assignment> given;
        try {
            given = assignor.assign(cluster, new GroupSubscription(asked)).groupAssignment();
        } catch (RuntimeException error) {
            return "failed";
        }
        return new TreeMap<>(given).entrySet().stream()
            .map(each -> each.getKey() + ":" + told(each.getValue().partitions()))
            .collect(Collectors.joining(","));
    }

    /** The user data of the sticky assignor, version 1. */
    private static ByteBuffer claim(List<TopicPartition> owned, int generation) {
        Map<String, List<Integer>> byTopic = new TreeMap<>();
        owned.forEach(each -> byTopic.computeIfAbsent(each.topic(), name -> new ArrayList<>())
            .add(each.partition()));
        ByteBuffer data = ByteBuffer.allocate(4096).putInt(byTopic.size());
        byTopic.forEach((topic, numbers) -> {
            data.putShort((short) topic.length()).put(topic.getBytes(StandardCharsets.UTF_8));
            data.putInt(numbers.size());
            numbers.forEach(data::putInt);
        });
        return data.putInt(generation).flip();
    }

    private static TopicPartition partition(String text) {
        return new TopicPartition(text.substring(0, 1), Integer.parseInt(text.substring(1)));
    }

    private static String told(Collection<TopicPartition> partitions) {
        return partitions.stream()
            .sorted(Comparator.comparing(TopicPartition::topic).thenComparing(TopicPartition::partition))
            .map(each -> each.topic() + each.partition()).collect(Collectors.joining("/"));
    }

    private static List<String> split(String text) {
        return text.equals("-") ? List.of() : Arrays.asList(text.split("/"));
    }
}
