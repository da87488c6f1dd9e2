package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dropbell/bench/stack"
)

// watchers are many viewers of one cockpit, half of them in Chinese.
type watchers struct {
	list   []*watcher
	events atomic.Int64
	bytes  atomic.Int64
}

// A watcher is one connection and the values it was brought to.
type watcher struct {
	conn net.Conn

	mu    sync.Mutex
	cells map[string]string
	err   error
}

// open connects n watchers and returns when each has its first values.
func open(ctx context.Context, addr, path, cookie string, n int) (*watchers, error) {
	w := &watchers{}
	for i := range n {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return w, err
		}
		language := []string{"en", "zh-CN"}[i%2]
		if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\nAccept: text/event-stream\r\nAccept-Encoding: gzip, deflate, br\r\nAccept-Language: %s\r\n\r\n",
			path, addr, cookie, language); err != nil {
			return w, err
		}
		one := &watcher{conn: conn, cells: map[string]string{}}
		w.list = append(w.list, one)
		go one.read(w)
	}
	return w, w.until(ctx, func(c map[string]string) bool { return len(c) > 0 })
}

// until waits until every watcher's values are as ok wants them.
func (w *watchers) until(ctx context.Context, ok func(map[string]string) bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return stack.Until(ctx, 50*time.Millisecond, func() (bool, error) { return w.all(ok) })
}

func (w *watcher) read(all *watchers) {
	lines := bufio.NewReaderSize(w.conn, 32<<10)
	for {
		line, err := lines.ReadString('\n')
		all.bytes.Add(int64(len(line)))
		if err != nil {
			w.mu.Lock()
			w.err = err
			w.mu.Unlock()
			return
		}
		data, isData := strings.CutPrefix(line, "data: ")
		if !isData {
			continue
		}
		all.events.Add(1)
		w.mu.Lock()
		if err := json.Unmarshal([]byte(data), &w.cells); err != nil {
			w.err = fmt.Errorf("%q: %w", data, err)
		}
		w.mu.Unlock()
	}
}

// all reports whether every watcher's values are as ok wants them.
func (w *watchers) all(ok func(map[string]string) bool) (bool, error) {
	for _, one := range w.list {
		one.mu.Lock()
		fine, err := ok(one.cells), one.err
		one.mu.Unlock()
		if err != nil || !fine {
			return false, err
		}
	}
	return true, nil
}

// agree waits until every viewer sees that all messages are out.
func (w *watchers) agree(ctx context.Context, messages int) error {
	digits := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r < '0' || r > '9' {
				return -1
			}
			return r
		}, s)
	}
	want := fmt.Sprint(messages)
	err := w.until(ctx, func(c map[string]string) bool { return digits(c["sum.sent"]) == want && digits(c["s1.n"]) == want+want })
	if err != nil {
		return fmt.Errorf("not every viewer has the final number: %w", err)
	}
	return nil
}

func (w *watchers) close() {
	for _, one := range w.list {
		one.conn.Close()
	}
}
