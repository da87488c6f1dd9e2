package consoles

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

	"dropbell/lab/bench/stack"
)

// watchers are many viewers of one page, half of them in Chinese.
type watchers struct {
	list   []*watcher
	events atomic.Int64
	bytes  atomic.Int64
}

// A watcher is one connection and the last state that it received: the name of the state and, if
// the page receives values, the values.
type watcher struct {
	conn net.Conn

	mu    sync.Mutex
	cells map[string]string
	state string
	err   error
}

// languages are the languages of the viewers, in turns.
var languages = []string{"en", "zh-CN"}

// open connects n watchers and returns when each has its first values.
func open(ctx context.Context, addr, path, cookie string, n int) (*watchers, error) {
	w := &watchers{}
	for i := range n {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return w, err
		}
		language := languages[i%len(languages)]
		if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\nAccept: text/event-stream\r\nAccept-Encoding: gzip, deflate, br\r\nAccept-Language: %s\r\n\r\n",
			path, addr, cookie, language); err != nil {
			return w, err
		}
		one := &watcher{conn: conn, cells: map[string]string{}}
		w.list = append(w.list, one)
		go one.read(w)
	}
	return w, w.until(ctx, func(one *watcher) bool { return one.state != "" })
}

// until waits until every watcher's values are as ok wants them.
func (w *watchers) until(ctx context.Context, ok func(*watcher) bool) error {
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
		if id, isID := strings.CutPrefix(line, "id: "); isID {
			all.events.Add(1)
			w.mu.Lock()
			w.state = strings.TrimSpace(id)
			w.mu.Unlock()
		}
		data, isData := strings.CutPrefix(line, "data: {")
		if !isData {
			continue
		}
		data = "{" + data
		w.mu.Lock()
		if err := json.Unmarshal([]byte(data), &w.cells); err != nil {
			w.err = fmt.Errorf("%q: %w", data, err)
		}
		w.mu.Unlock()
	}
}

// all reports whether every watcher's values are as ok wants them.
func (w *watchers) all(ok func(*watcher) bool) (bool, error) {
	for _, one := range w.list {
		one.mu.Lock()
		fine, err := ok(one), one.err
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
	err := w.until(ctx, func(one *watcher) bool {
		return digits(one.cells["sum.sent"]) == want && digits(one.cells["s1.n"]) == want+want
	})
	if err != nil {
		return fmt.Errorf("not every viewer has the final number: %w", err)
	}
	return nil
}

// agreeWith waits until every viewer has the state that a new viewer is sent.
func (w *watchers) agreeWith(ctx context.Context, addr, path, cookie string) error {
	fresh, err := open(ctx, addr, path, cookie, len(languages))
	if err != nil {
		return err
	}
	defer fresh.close()
	for i, one := range w.list {
		err := stack.Until(ctx, 50*time.Millisecond, func() (bool, error) { return one.at() == fresh.list[i%len(languages)].at(), nil })
		if err != nil {
			return fmt.Errorf("not every viewer has the final state: %w", err)
		}
	}
	return nil
}

func (w *watcher) at() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state
}

func (w *watchers) close() {
	for _, one := range w.list {
		one.conn.Close()
	}
}
