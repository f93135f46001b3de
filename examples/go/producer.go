// Puts tasks: plain, with a priority, many at once, at most once, and one whose end it awaits.
//
// PINPRIQ_URL names the server, by default pinpriq://127.0.0.1:7251. Install redigo (Debian:
// golang-go, golang-github-gomodule-redigo-dev) and run:
// GO111MODULE=off GOPATH=/usr/share/gocode go run producer.go
package main

import (
	"fmt"
	"log"
	"os"
	"reflect"
	"strings"

	"github.com/gomodule/redigo/redis"
)

// dial connects to the first server of a URL such as pinpriq://a:7251,b:7251 that answers. The
// library knows the scheme of Redis, and one server.
func dial(url string, options ...redis.DialOption) (pinpriq redis.Conn, err error) {
	scheme, servers, _ := strings.Cut(url, "://")
	scheme, user := strings.Replace(scheme, "pinpriq", "redis", 1), ""
	if at := strings.LastIndex(servers, "@"); at >= 0 {
		user, servers = servers[:at+1], servers[at+1:]
	}
	for _, server := range strings.Split(servers, ",") {
		pinpriq, err = redis.DialURL(scheme+"://"+user+server, options...)
		if err == nil {
			break
		}
	}
	return pinpriq, err
}

func connect() redis.Conn {
	url := os.Getenv("PINPRIQ_URL")
	if url == "" {
		url = "pinpriq://127.0.0.1:7251"
	}
	pinpriq, err := dial(url)
	if err != nil {
		log.Fatal(err)
	}
	return pinpriq
}

// ask sends a command. All of this program's commands must succeed.
func ask(pinpriq redis.Conn, command string, words ...interface{}) interface{} {
	reply, err := pinpriq.Do(command, words...)
	if err != nil {
		log.Fatal(command, ": ", err)
	}
	return reply
}

func expect(seen, wanted interface{}) {
	if !reflect.DeepEqual(seen, wanted) {
		log.Fatalf("expected %v and got %v", wanted, seen)
	}
}

// tasks returns the tasks of a reply, each as queue, id, receipt and payload.
func tasks(reply interface{}) [][]string {
	var read [][]string
	for _, task := range reply.([]interface{}) {
		fields, err := redis.Strings(task, nil)
		if err != nil {
			log.Fatal(err)
		}
		read = append(read, fields)
	}
	return read
}

func main() {
	pinpriq := connect()

	// PUT returns the id of the new task. The first task creates the queue.
	fmt.Printf("put task %s\n", ask(pinpriq, "PUT", "go-mails", "to: ann"))

	// A lower number is more urgent; without PRIORITY it is 0. A TTL drops a task that was not taken.
	ask(pinpriq, "PUT", "go-mails", "to: bob", "PRIORITY", -1)
	ask(pinpriq, "PUT", "go-mails", "to: eve", "PRIORITY", 9, "TTL", 60_000)

	// Looking changes nothing.
	var seen []string
	for _, task := range tasks(ask(pinpriq, "PEEK", "go-mails", "COUNT", 10)) {
		seen = append(seen, task[3])
	}
	expect(seen, []string{"to: bob", "to: ann", "to: eve"})

	// What is sent without waiting for replies takes one round trip.
	for number := 0; number < 100; number++ {
		pinpriq.Send("PUT", "numbers", number)
	}
	ask(pinpriq, "")
	expect(len(tasks(ask(pinpriq, "POP", "numbers", "COUNT", 1000))), 100)

	// If the connection breaks, send it again: the key lets both put one task. For a minute this is
	// so even if the task is done meanwhile. The reply has the id, and 1 if it is new.
	order := []interface{}{"go-mails", "to: joe", "UNIQUE", "order 17", "WINDOW", 60_000}
	first := ask(pinpriq, "PUT", order...).([]interface{})
	expect(first[1], int64(1))
	expect(ask(pinpriq, "PUT", order...), []interface{}{first[0], int64(0)})

	// With WAIT the producer learns how its task ended.
	done := make(chan bool)
	go func() {
		own := connect()
		for _, task := range tasks(ask(own, "TAKE", "urgent", "WAIT", 30_000)) {
			ask(own, "ACK", task[0], task[2])
		}
		done <- true
	}()
	ended := ask(pinpriq, "PUT", "urgent", "now!", "WAIT", 30_000).([]interface{})
	<-done
	expect(ended[1], []byte("acked"))

	expect(ask(pinpriq, "QUEUE", "DROP", "go-mails"), int64(4))

	// worker.go takes from this queue.
	ask(pinpriq, "PUT", "go-jobs", "to: zoe")
	fmt.Println("producer: ok")
}
