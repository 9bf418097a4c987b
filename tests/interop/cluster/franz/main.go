// A producer or a group member with franz-go: see streamers.py.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const partitions = 3

func say(format string, words ...any) {
	line := strings.ReplaceAll(fmt.Sprintf(format, words...), "\n", " ")
	os.Stdout.WriteString(line + "\n")
}

func check(err error) {
	if err != nil {
		say("error %v", err)
		os.Exit(1)
	}
}

func produce(running context.Context, address, topic string) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(address, ",")...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)
	check(err)
	defer client.Close()
	for number := 0; running.Err() == nil; number++ {
		record := &kgo.Record{
			Topic: topic, Partition: int32(number % partitions), Value: []byte(strconv.Itoa(number)),
		}
		client.Produce(context.Background(), record, func(at *kgo.Record, err error) {
			if err != nil {
				say("error %v", err)
				return
			}
			say("acked %s %d %d", at.Value, at.Partition, at.Offset)
		})
		time.Sleep(30 * time.Millisecond)
	}
	check(client.Flush(context.Background()))
}

func consume(running context.Context, address, topic string) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(address, ",")...),
		kgo.ConsumerGroup(topic),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	check(err)
	defer client.Close()
	for running.Err() == nil {
		found := client.PollFetches(running)
		found.EachError(func(_ string, _ int32, err error) {
			if !errors.Is(err, context.Canceled) {
				say("error %v", err)
			}
		})
		found.EachRecord(func(record *kgo.Record) {
			say("read %d %d %s", record.Partition, record.Offset, record.Value)
		})
	}
}

func main() {
	running, end := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		end()
	}()
	role, address, topic := os.Args[1], os.Args[2], os.Args[3]
	if role == "produce" {
		produce(running, address, topic)
	} else {
		consume(running, address, topic)
	}
}
