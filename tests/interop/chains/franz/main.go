// The copier with franz-go: address, source, target, number of records.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	chunk   = 10
	givesUp = 5
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	address, source, target := os.Args[1], os.Args[2], os.Args[3]
	count, err := strconv.ParseInt(os.Args[4], 10, 64)
	check(err)
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(strings.Split(address, ",")...),
		kgo.TransactionalID(target),
		kgo.ConsumerGroup(target),
		kgo.ConsumeTopics(source),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(),
		kgo.TransactionTimeout(5*time.Second),
		kgo.SessionTimeout(time.Second),
		kgo.HeartbeatInterval(200*time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)
	check(err)
	defer session.Close()
	ctx := context.Background()
	for attempt := 1; ; {
		if partition, ok := session.Client().CommittedOffsets()[source][0]; ok && partition.Offset >= count {
			return
		}
		waiting, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		found := session.PollRecords(waiting, chunk)
		cancel()
		if found.NumRecords() == 0 {
			continue
		}
		check(session.Begin())
		promise := kgo.AbortingFirstErrPromise(session.Client())
		found.EachRecord(func(record *kgo.Record) {
			copied := &kgo.Record{Topic: target, Partition: 0, Value: record.Value}
			session.Produce(ctx, copied, promise.Promise())
		})
		commits := kgo.TryCommit
		if promise.Err() != nil || attempt%givesUp == 0 {
			commits = kgo.TryAbort
		}
		_, err := session.End(ctx, commits)
		check(err)
		attempt++
		time.Sleep(20 * time.Millisecond)
	}
}
