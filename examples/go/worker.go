// A worker: it renews its leases, fails what it cannot do, outlives restarts of the server, and
// stops at SIGTERM after the current task.
//
// PINPRIQ_URL names the server, by default pinpriq://127.0.0.1:7251. Install redigo (Debian:
// golang-go, golang-github-gomodule-redigo-dev) and run:
// GO111MODULE=off GOPATH=/usr/share/gocode go run worker.go QUEUE
package main

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	ttr      = time.Second     // how long a lease lasts unless it is renewed
	wait     = 2 * time.Second // how long to wait for a task, and so for the end at SIGTERM
	pauseMin = 100 * time.Millisecond
)

// task is what this worker needs to know of a task.
type task struct {
	Receipt  string `redis:"receipt"`
	Payload  string `redis:"payload"`
	Attempts int    `redis:"attempts"`
}

// handle is the work itself.
func handle(t task) error {
	if t.Payload == "slow" {
		time.Sleep(ttr * 3 / 2) // longer than the lease would last by itself
	}
	if t.Payload == "broken" || t.Payload == "flaky" && t.Attempts < 2 {
		return fmt.Errorf("cannot do %s", t.Payload)
	}
	return nil
}

// ends says what the replies to ACK and FAIL mean.
var ends = map[string]string{"OK": "acked", "B": "buried", "R": "released", "W": "released"}

// workOn renews the lease while a goroutine works. It returns the reply to ACK or FAIL.
func workOn(pinpriq redis.Conn, queue string, t task) (string, error) {
	done := make(chan error, 1)
	go func() { done <- handle(t) }()
	for {
		select {
		case <-time.After(ttr / 3):
			if _, err := pinpriq.Do("TOUCH", queue, t.Receipt); err != nil {
				return "", err
			}
		case failure := <-done:
			if failure == nil {
				return redis.String(pinpriq.Do("ACK", queue, t.Receipt))
			}
			// The settings of the queue say what follows: another try later, or none.
			return redis.String(pinpriq.Do("FAIL", queue, t.Receipt, "REASON", failure.Error()))
		}
	}
}

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

// serve does tasks until the connection breaks or it is time to stop.
func serve(url, queue string, stop chan os.Signal, pause *time.Duration) error {
	pinpriq, err := dial(url, redis.DialReadTimeout(5*wait))
	if err != nil {
		return err
	}
	defer pinpriq.Close()
	// After the third failure a task is buried: DIG or PLOW brings it back.
	_, err = pinpriq.Do("QUEUE", "SET", queue, "ATTEMPTS", 3, "BACKOFF", 20)
	for err == nil && len(stop) == 0 {
		*pause = pauseMin
		// Without a task, an empty reply comes when the time is up.
		var taken []interface{}
		taken, err = redis.Values(pinpriq.Do("TAKE", queue,
			"WAIT", wait.Milliseconds(), "TTR", ttr.Milliseconds(), "WITHMETA"))
		for _, fields := range taken {
			// What is known of a task comes as a flat list of names and values.
			var t task
			if err := redis.ScanStruct(fields.([]interface{}), &t); err != nil {
				return err
			}
			reply, err := workOn(pinpriq, queue, t)
			if err == nil {
				fmt.Println(t.Payload, ends[reply])
			} else if _, isRefusal := err.(redis.Error); isRefusal {
				fmt.Println(t.Payload, "lost:", err) // the lease has ended, and the task comes again
			} else {
				return err
			}
		}
	}
	return err
}

func main() {
	url, queue := os.Getenv("PINPRIQ_URL"), append(os.Args, "go-jobs")[1]
	if url == "" {
		url = "pinpriq://127.0.0.1:7251"
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	pause := pauseMin
	for len(stop) == 0 {
		if err := serve(url, queue, stop, &pause); err != nil {
			fmt.Printf("no server, next try in %v: %v\n", pause, err)
			time.Sleep(pause)
			if pause < 3*time.Second {
				pause *= 2
			}
		}
	}
	fmt.Println("worker: ok")
}
