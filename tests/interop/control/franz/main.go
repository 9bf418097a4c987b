// Sets a fault at a control door, produces through it, and prints what the door saw.
// Arguments: the URL of the door, a topic.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// call makes a call of the door, and reads its value into found.
func call(path string, arguments map[string]any, found any) {
	body, err := json.Marshal(arguments)
	check(err)
	answer, err := http.Post(os.Args[1]+"/v1/"+path, "application/json", bytes.NewReader(body))
	check(err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	check(err)
	if answer.StatusCode != http.StatusOK {
		check(fmt.Errorf("%s: %d %s", path, answer.StatusCode, text))
	}
	check(json.Unmarshal(text, &struct{ Value any }{found}))
}

// value reads a value of the door.
func value(path string, found any) {
	answer, err := http.Get(os.Args[1] + "/v1/" + path)
	check(err)
	defer answer.Body.Close()
	check(json.NewDecoder(answer.Body).Decode(&struct{ Value any }{found}))
}

func main() {
	topic := os.Args[2]
	var servers string
	value("bootstrap_servers", &servers)
	var fault struct {
		Kept string `json:"@kept"`
	}
	call("fault/add", map[string]any{
		"apis": []string{"Produce"}, "topic": topic, "error": "NOT_ENOUGH_REPLICAS", "times": 2,
	}, &fault)

	client, err := kgo.NewClient(kgo.SeedBrokers(servers))
	check(err)
	defer client.Close()
	record := &kgo.Record{Topic: topic, Value: []byte("from franz-go")}
	check(client.ProduceSync(context.Background(), record).FirstErr())

	var nothing any
	call("fault/wait", map[string]any{"id": fault.Kept, "n": 2}, &nothing)
	var hits int
	value("fault/hits?id="+fault.Kept, &hits)
	call("fault/end", map[string]any{"id": fault.Kept}, &nothing)
	var records []struct {
		Value map[string]string
	}
	call("topic/records", map[string]any{"topic": topic}, &records)
	fmt.Println(hits, len(records), records[0].Value["@text"])
}
