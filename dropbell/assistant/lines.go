package assistant

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"sync"
)

// noJSON is the answer to a line that is no JSON: the parse error of JSON-RPC 2.0 (https://www.jsonrpc.org/specification, section 5.1),
// which has no id because none could be read.
const noJSON = `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"The line is not JSON. Send one JSON-RPC message per line."}}` + "\n"

// answers are the lines that the command writes. Writers do not mix within a line.
type answers struct {
	mu sync.Mutex
	io.Writer
}

// Write implements [io.Writer].
func (a *answers) Write(line []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Writer.Write(line)
}

// Close implements [io.Closer]. Standard output stays open.
func (a *answers) Close() error { return nil }

// wellFormed passes lines of JSON on. Any other line is answered with a parse error, and the session goes on.
type wellFormed struct {
	in      io.Closer
	lines   *bufio.Reader
	refused io.Writer
	line    []byte // what is left of the present line
}

// Read implements [io.Reader].
func (w *wellFormed) Read(p []byte) (int, error) {
	for len(w.line) == 0 {
		line, err := w.lines.ReadBytes('\n')
		switch {
		case json.Valid(line):
			w.line = line
		case len(bytes.TrimSpace(line)) > 0:
			if _, err := io.WriteString(w.refused, noJSON); err != nil {
				return 0, err
			}
		}
		if err != nil && len(w.line) == 0 {
			return 0, err
		}
	}
	n := copy(p, w.line)
	w.line = w.line[n:]
	return n, nil
}

// Close implements [io.Closer].
func (w *wellFormed) Close() error { return w.in.Close() }
