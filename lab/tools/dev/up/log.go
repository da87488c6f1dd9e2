package main

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
)

// lastLines is how much of a log is shown when its program died.
const lastLines = 15

// lineLog writes a program's output to a file. It also passes warnings, errors, and lines that
// are not log records to the terminal.
type lineLog struct {
	mu       sync.Mutex
	file     *os.File
	terminal io.Writer
	partial  []byte
	last     []string
}

// openLog starts a new file; the previous file is kept with the suffix .old.
func openLog(path string, terminal io.Writer) (*lineLog, error) {
	if err := os.Rename(path, path+".old"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &lineLog{file: f, terminal: terminal}, nil
}

// Write never fails: a full disk must not block the program that logs.
func (l *lineLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.file.Write(p)
	l.partial = append(l.partial, p...)
	for {
		end := bytes.IndexByte(l.partial, '\n')
		if end < 0 {
			return len(p), nil
		}
		l.line(string(l.partial[:end]))
		l.partial = l.partial[end+1:]
	}
}

func (l *lineLog) line(s string) {
	l.last = append(l.last, s)
	if len(l.last) > lastLines {
		l.last = l.last[1:]
	}
	if noteworthy(s) {
		_, _ = io.WriteString(l.terminal, s+"\n")
	}
}

func noteworthy(line string) bool {
	for _, quiet := range []string{`"level":"INFO"`, `"level":"DEBUG"`, "level=INFO", "level=DEBUG"} {
		if strings.Contains(line, quiet) {
			return false
		}
	}
	return strings.TrimSpace(line) != ""
}

// Last returns the last lines, indented.
func (l *lineLog) Last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var b strings.Builder
	for _, s := range l.last {
		b.WriteString("    " + s + "\n")
	}
	return b.String()
}

func (l *lineLog) Close() error { return l.file.Close() }
