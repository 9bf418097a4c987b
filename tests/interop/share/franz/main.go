// A member of a share group with franz-go. Arguments: see Worker in worker.py, as JSON.
//
// It works until it is killed or its standard input ends, or obeys the orders in its input:
//
//	poll COUNT SECONDS    got TIME PARTITION OFFSET DELIVERIES VALUE ..., polled
//	ack TYPE [OFFSET ...]  of the records of the last poll, by default all
//	flush                 did or failed TIME PARTITION OFFSET TYPE ..., flushed
//	close                 closed
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var statuses = map[string]kgo.AckStatus{
	"accept": kgo.AckAccept, "release": kgo.AckRelease, "reject": kgo.AckReject,
	"renew": kgo.AckRenew,
}

type asked struct {
	Address, Topic, Group string
	Obeys                 bool
	Seed                  int64
	RecordsMax            int32 `json:"records_max"`
	IsStrict              bool  `json:"is_strict"`
	RejectEvery           int   `json:"reject_every"`
}

type mark struct {
	record *kgo.Record
	kind   string
}

type member struct {
	client *kgo.Client
	last   []*kgo.Record
	marks  []mark
	mu     sync.Mutex
	failed map[int32]error
}

func say(words ...any) {
	line := strings.ReplaceAll(fmt.Sprint(words...), "\n", " ")
	_, _ = os.Stdout.WriteString(line + "\n")
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (m *member) poll(count int, wait time.Duration) {
	late, end := context.WithTimeout(context.Background(), wait)
	defer end()
	found := m.client.PollRecords(late, count)
	found.EachError(func(_ string, partition int32, err error) {
		if !errors.Is(err, context.DeadlineExceeded) {
			say("error ", partition, " ", err)
		}
	})
	m.last = found.Records()
	now := time.Now().UnixMilli()
	for _, each := range m.last {
		say(fmt.Sprintf("got %d %d %d %d %s",
			now, each.Partition, each.Offset, each.DeliveryCount(), each.Value))
	}
}

func (m *member) ack(record *kgo.Record, kind string) {
	say(fmt.Sprintf("try %d %d %d %s",
		time.Now().UnixMilli(), record.Partition, record.Offset, kind))
	record.Ack(statuses[kind])
	m.marks = append(m.marks, mark{record, kind})
}

func (m *member) flush() {
	late, end := context.WithTimeout(context.Background(), 60*time.Second)
	defer end()
	check(m.client.FlushAcks(late))
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now().UnixMilli()
	for _, each := range m.marks {
		word, why := "did", ""
		if err := m.failed[each.record.Partition]; err != nil {
			word, why = "failed", " "+err.Error()
		}
		say(fmt.Sprintf("%s %d %d %d %s%s",
			word, now, each.record.Partition, each.record.Offset, each.kind, why))
	}
	m.marks, m.failed = nil, map[int32]error{}
}

func (m *member) close() {
	m.client.Close()
	say("closed")
}

func (m *member) obey() {
	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		words := strings.Fields(orders.Text())
		switch words[0] {
		case "poll":
			count, _ := strconv.Atoi(words[1])
			seconds, _ := strconv.ParseFloat(words[2], 64)
			m.poll(count, time.Duration(seconds*float64(time.Second)))
			say("polled")
		case "ack":
			for _, each := range m.last {
				offset := strconv.FormatInt(each.Offset, 10)
				if len(words) == 2 || slices.Contains(words[2:], offset) {
					m.ack(each, words[1])
				}
			}
		case "flush":
			m.flush()
			say("flushed")
		case "close":
			m.close()
			return
		}
	}
}

func (m *member) work(given asked) {
	ended := make(chan struct{})
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		close(ended)
	}()
	chance := rand.New(rand.NewSource(given.Seed))
	for {
		select {
		case <-ended:
			m.close()
			return
		default:
		}
		m.poll(int(given.RecordsMax), 500*time.Millisecond)
		time.Sleep(time.Duration(chance.Intn(60)) * time.Millisecond)
		for _, each := range m.last {
			number, err := strconv.Atoi(string(each.Value))
			check(err)
			switch {
			case number%given.RejectEvery == 0:
				m.ack(each, "reject")
			case chance.Intn(12) == 0:
				m.ack(each, "release")
			default:
				m.ack(each, "accept")
			}
		}
		m.flush()
	}
}

func main() {
	var given asked
	check(json.Unmarshal([]byte(os.Args[1]), &given))
	self := &member{failed: map[int32]error{}}
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(given.Address, ",")...),
		kgo.ShareGroup(given.Group),
		kgo.ConsumeTopics(given.Topic),
		kgo.ShareMaxRecords(given.RecordsMax),
		kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.ShareAckCallback(func(_ *kgo.Client, found kgo.ShareAckResults) {
			self.mu.Lock()
			defer self.mu.Unlock()
			for _, each := range found {
				if each.Err != nil {
					self.failed[each.Partition] = each.Err
				}
			}
		}),
	}
	if given.IsStrict {
		options = append(options, kgo.ShareMaxRecordsStrict())
	}
	var err error
	self.client, err = kgo.NewClient(options...)
	check(err)
	if given.Obeys {
		self.obey()
	} else {
		self.work(given)
	}
}
