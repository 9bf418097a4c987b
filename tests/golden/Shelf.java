package tests.golden.shelf;

import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.coordinator.group.api.streams.StreamsGroupTopologyDescription;
import org.apache.kafka.coordinator.group.api.streams.StreamsGroupTopologyDescriptionPlugin;
import org.apache.kafka.coordinator.group.api.streams.StreamsTopologyDescriptionPermanentFailureException;

/** A plugin of Kafka's broker that keeps descriptions in memory: see shelf.py. */
public final class Shelf implements StreamsGroupTopologyDescriptionPlugin {
    private final Map<String, StreamsGroupTopologyDescription> kept = new ConcurrentHashMap<>();

    @Override
    public void configure(Map<String, ?> configs) {}

    @Override
    public void close() {}

    @Override
    public CompletableFuture<Void> setTopology(
        String group, int epoch, StreamsGroupTopologyDescription description) {
        if (group.endsWith("fails")) {
            return CompletableFuture.failedFuture(new RuntimeException("the disk is full"));
        }
        if (group.endsWith("refused")) {
            return CompletableFuture.failedFuture(
                new StreamsTopologyDescriptionPermanentFailureException("too large"));
        }
        kept.put(group + " " + epoch, description);
        return CompletableFuture.completedFuture(null);
    }

    @Override
    public CompletableFuture<StreamsGroupTopologyDescription> getTopology(String group, int epoch) {
        if (group.endsWith("unreadable")) {
            return CompletableFuture.failedFuture(new RuntimeException("the disk is broken"));
        }
        return CompletableFuture.completedFuture(kept.get(group + " " + epoch));
    }

    @Override
    public CompletableFuture<Void> deleteTopology(String group) {
        if (group.endsWith("kept")) {
            return CompletableFuture.failedFuture(new RuntimeException("the disk is read-only"));
        }
        kept.keySet().removeIf(place -> place.startsWith(group + " "));
        return CompletableFuture.completedFuture(null);
    }
}
