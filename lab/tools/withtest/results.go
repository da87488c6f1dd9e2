package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
)

// An event is a line of `go test -json` (go doc test2json, go help buildjson).
type event struct {
	Action      string
	ImportPath  string
	Package     string
	Test        string
	Output      string
	FailedBuild string
}

// streamed returns the command with -json if it is a plain `go test`. Only with -json does go
// report the end of a package before all earlier packages of the list have ended.
func streamed(args []string) ([]string, bool) {
	if len(args) < 2 || args[0] != "go" || args[1] != "test" || slices.Contains(args, "-v") || slices.Contains(args, "-json") {
		return args, false
	}
	return slices.Insert(slices.Clone(args), 2, "-json"), true
}

// packages returns the number of packages that a `go test` names, 0 if it is not known.
func packages(args []string) int {
	list := []string{"list"}
	for _, arg := range args {
		if strings.HasPrefix(arg, ".") || strings.HasPrefix(arg, "dropbell") || strings.HasPrefix(arg, "-modfile=") {
			list = append(list, arg)
		}
	}
	out, err := exec.Command("go", list...).Output()
	if err != nil {
		return 0 // go test prints the reason
	}
	names := strings.Fields(string(out))
	slices.Sort(names)
	return len(slices.Compact(names))
}

// results prints the events of `go test -json`. When a package ends, it prints the output of the
// tests that did not pass, and then the line that `go test` prints for the package, with the
// number of packages left.
type results struct {
	to    io.Writer
	total int // packages; 0 = not known

	ended  int
	builds map[string]string  // output of the compiler by what it compiled
	tests  map[string][]*test // of packages that have not ended
}

// A test is a test that has not passed, or, without a name, its package.
type test struct {
	name   string
	output strings.Builder
}

func newResults(to io.Writer, total int) *results {
	return &results{to: to, total: total, builds: map[string]string{}, tests: map[string][]*test{}}
}

// read prints until from ends. Lines that are no events are printed as they are.
func (r *results) read(from io.Reader) error {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadString('\n')
		var e event
		switch {
		case line == "":
		case json.Unmarshal([]byte(line), &e) != nil:
			fmt.Fprint(r.to, line)
		default:
			r.take(e)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *results) take(e event) {
	switch e.Action {
	case "build-output":
		r.builds[e.ImportPath] += e.Output
	case "output":
		if !strings.HasPrefix(e.Output, "=== ") {
			r.of(e).output.WriteString(e.Output)
		}
	case "pass", "skip", "fail":
		switch {
		case e.Test == "":
			r.end(e)
		case e.Action != "fail":
			r.tests[e.Package] = slices.DeleteFunc(r.tests[e.Package], func(t *test) bool { return t.name == e.Test })
		}
	}
}

// of returns the test that an event is about.
func (r *results) of(e event) *test {
	list := r.tests[e.Package]
	if i := slices.IndexFunc(list, func(t *test) bool { return t.name == e.Test }); i >= 0 {
		return list[i]
	}
	t := &test{name: e.Test}
	r.tests[e.Package] = append(list, t)
	return t
}

func (r *results) end(e event) {
	r.ended++
	own := ""
	for _, t := range r.tests[e.Package] {
		if t.name == "" {
			own = t.output.String()
		} else if e.Action == "fail" {
			fmt.Fprint(r.to, t.output.String())
		}
	}
	delete(r.tests, e.Package)
	if e.Action != "fail" {
		own = own[strings.LastIndex(strings.TrimSuffix(own, "\n"), "\n")+1:]
	}
	if e.FailedBuild != "" {
		own = r.builds[e.FailedBuild] + own
	}
	if r.total > 0 && strings.HasSuffix(own, "\n") {
		own = fmt.Sprintf("%s\t(%d left)\n", own[:len(own)-1], max(r.total-r.ended, 0))
	}
	fmt.Fprint(r.to, own)
}
