package streams

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"dropbell/lab/bench/load"
)

const secret = "a secret that only this benchmark knows"

// A crowd is one process with many clients of one web process, since the limit of open files
// holds for each process. It reads commands as lines on its standard input, and answers each
// with a line of JSON.
type crowd struct {
	addr   string
	source net.IP // a loopback address of its own
	first  int    // user id of the first client
	n      int

	ready    atomic.Int64 // clients whose stream has begun
	messages atomic.Int64
	last     atomic.Int64  // when the last message came, in ns since 1970
	dials    atomic.Int64  // attempts after the first
	failures atomic.Int64  // failed attempts among dials
	dialing  chan struct{} // bounds attempts at a time
}

// A sight counts the observations of a crowd.
type sight struct {
	Ready, Messages, Dials, Failures int64
	Last                             time.Time
}

func (c *crowd) sight() sight {
	return sight{c.ready.Load(), c.messages.Load(), c.dials.Load(), c.failures.Load(), time.Unix(0, c.last.Load())}
}

// work answers each line of in; the clients connect at once.
func (c *crowd) work(in io.Reader, out io.Writer) error {
	c.dialing = make(chan struct{}, 64)
	for i := range c.n {
		token, err := load.Token(secret, c.first+i)
		if err != nil {
			return err
		}
		go c.client(token)
	}
	answers := json.NewEncoder(out)
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if err := answers.Encode(c.sight()); err != nil {
			return err
		}
	}
	return nil // the connections end with the process
}

// client keeps one stream open, like a browser. After a lost connection it reconnects after the
// delay that the server has named, with the id of the last event.
func (c *crowd) client(token string) {
	lastID, retry := "", 2*time.Second
	for first := true; ; first = false {
		if !first {
			c.dials.Add(1)
		}
		begun := c.stream(token, &lastID, &retry)
		if begun {
			c.ready.Add(-1)
		} else {
			c.failures.Add(1)
		}
		// Browsers wait as long as they were told, some a little longer.
		time.Sleep(retry + rand.N(retry/4))
	}
}

// stream reads one stream until it ends, and reports whether it had begun.
func (c *crowd) stream(token string, lastID *string, retry *time.Duration) (begun bool) {
	c.dialing <- struct{}{}
	release := sync.OnceFunc(func() { <-c.dialing })
	defer release()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: c.source}, Timeout: 10 * time.Second}
	conn, err := dialer.Dial("tcp", c.addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	resume := ""
	if *lastID != "" {
		resume = "Last-Event-ID: " + *lastID + "\r\n"
	}
	if _, err := fmt.Fprintf(conn, "GET /api/v1/inbox/stream HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n%s\r\n", c.addr, token, resume); err != nil {
		return false
	}
	in := bufio.NewReaderSize(conn, 512)
	name := ""
	for {
		line, err := in.ReadSlice('\n')
		if err != nil && err != bufio.ErrBufferFull {
			return begun
		}
		field, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(": "))
		switch string(field) {
		case "retry":
			if ms, err := strconv.Atoi(string(value)); err == nil {
				*retry = time.Duration(ms) * time.Millisecond
			}
		case "id":
			*lastID = string(value)
		case "event":
			name = string(value)
		case "data":
			switch name {
			case "ready":
				begun = true
				c.ready.Add(1)
				release()
			case "message":
				c.messages.Add(1)
				c.last.Store(time.Now().UnixNano())
			}
			name = ""
		}
	}
}
