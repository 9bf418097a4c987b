// Sends and receives one record: the settings of producer and consumer as JSON; a topic.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// options returns the options of package kgo that the names of the settings are.
func options(text string) []kgo.Opt {
	var settings map[string]any
	check(json.Unmarshal([]byte(text), &settings))
	var found []kgo.Opt
	for name, value := range settings {
		duration, _ := time.ParseDuration(fmt.Sprint(value))
		switch name {
		case "SeedBrokers":
			for _, each := range value.([]any) {
				found = append(found, kgo.SeedBrokers(each.(string)))
			}
		case "ConsumerGroup":
			found = append(found, kgo.ConsumerGroup(value.(string)))
		case "MetadataMinAge":
			found = append(found, kgo.MetadataMinAge(duration))
		case "ProducerLinger":
			found = append(found, kgo.ProducerLinger(duration))
		case "HeartbeatInterval":
			found = append(found, kgo.HeartbeatInterval(duration))
		case "FetchMaxWait":
			found = append(found, kgo.FetchMaxWait(duration))
		default:
			check(fmt.Errorf("kgo has no option %s", name))
		}
	}
	return found
}

func main() {
	topic := os.Args[3]
	producer, err := kgo.NewClient(options(os.Args[1])...)
	check(err)
	defer producer.Close()
	record := &kgo.Record{Topic: topic, Value: []byte("from franz-go")}
	check(producer.ProduceSync(context.Background(), record).FirstErr())
	consumer, err := kgo.NewClient(append(options(os.Args[2]), kgo.ConsumeTopics(topic))...)
	check(err)
	defer consumer.Close()
	for _, each := range consumer.PollFetches(context.Background()).Records() {
		fmt.Println(string(each.Value))
	}
}
