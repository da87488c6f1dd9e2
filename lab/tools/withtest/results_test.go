package main

import (
	"strings"
	"testing"
)

// TestResults: two packages run concurrently, and the second ends first. The first package has a
// test that passes, a test that fails and a test that never ends. The third package does not
// compile.
func TestResults(t *testing.T) {
	const events = `go: downloading a library
{"Action":"start","Package":"dropbell/a"}
{"Action":"start","Package":"dropbell/b"}
{"Action":"output","Package":"dropbell/a","Test":"TestGood","Output":"=== RUN   TestGood\n"}
{"Action":"output","Package":"dropbell/a","Test":"TestGood","Output":"    a_test.go:1: nothing wrong\n"}
{"Action":"pass","Package":"dropbell/a","Test":"TestGood"}
{"Action":"output","Package":"dropbell/a","Test":"TestBad","Output":"    a_test.go:2: 1, want 2\n"}
{"Action":"output","Package":"dropbell/a","Test":"TestHangs","Output":"panic: test timed out\n"}
{"Action":"output","Package":"dropbell/a","Test":"TestBad","Output":"--- FAIL: TestBad (0.00s)\n"}
{"Action":"fail","Package":"dropbell/a","Test":"TestBad"}
{"Action":"output","Package":"dropbell/b","Output":"PASS\n"}
{"Action":"output","Package":"dropbell/b","Output":"ok  \tdropbell/b\t0.1s\n"}
{"Action":"pass","Package":"dropbell/b"}
{"Action":"output","Package":"dropbell/a","Output":"FAIL\tdropbell/a\t0.2s\n"}
{"Action":"fail","Package":"dropbell/a"}
{"ImportPath":"dropbell/c","Action":"build-output","Output":"c.go:1: undefined: x\n"}
{"ImportPath":"dropbell/c","Action":"build-fail"}
{"Action":"output","Package":"dropbell/c","Output":"FAIL\tdropbell/c [build failed]\n"}
{"Action":"fail","Package":"dropbell/c","FailedBuild":"dropbell/c"}
`
	const want = "go: downloading a library\n" +
		"ok  \tdropbell/b\t0.1s\t(2 left)\n" +
		"    a_test.go:2: 1, want 2\n--- FAIL: TestBad (0.00s)\npanic: test timed out\n" +
		"FAIL\tdropbell/a\t0.2s\t(1 left)\n" +
		"c.go:1: undefined: x\nFAIL\tdropbell/c [build failed]\t(0 left)\n"
	var got strings.Builder
	if err := newResults(&got, 3).read(strings.NewReader(events)); err != nil || got.String() != want {
		t.Errorf("%v, got\n%s\nwant\n%s", err, got.String(), want)
	}
}

func TestOnlyPlainRunsOfTestsAreStreamed(t *testing.T) {
	for command, want := range map[string]string{
		"go test -race ./...": "go test -json -race ./...",
		"go test -v ./domain": "go test -v ./domain",
		"go vet ./...":        "go vet ./...",
		"sh -c true":          "sh -c true",
		"go test -json ./...": "go test -json ./...",
	} {
		args, stream := streamed(strings.Fields(command))
		if got := strings.Join(args, " "); got != want || stream != (got != command) {
			t.Errorf("%q: %q, %v", command, got, stream)
		}
	}
	if n := packages([]string{"test", "./...", "-run", "X"}); n != 1 {
		t.Errorf("%d packages", n)
	}
}
