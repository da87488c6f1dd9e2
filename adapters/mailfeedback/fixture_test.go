package mailfeedback_test

import (
	"errors"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"dropbell/domain/delivery/feedback"
)

var (
	refs = feedback.NewRefs("a secret of tests")
	mine = feedback.Ref{Batch: 77, User: 4711}
)

// source has the methods that all sources have.
type source interface {
	Read(h http.Header, u *url.URL, body []byte) (feedback.Call, error)
}

// recorded returns an example of a provider's documents, with {ref} replaced by the reference of
// a mail.
func recorded(t *testing.T, name, ref string) string {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(strings.TrimSpace(string(raw)), "{ref}", ref)
}

// wants fails unless the call has one report like want.
func wants(t *testing.T, call feedback.Call, err error, want feedback.Report) {
	t.Helper()
	if err != nil || len(call.Reports) != 1 {
		t.Errorf("%+v, %v", call, err)
		return
	}
	got := call.Reports[0]
	if got.At.IsZero() {
		t.Errorf("no instant: %+v", got)
	}
	if got.Status == feedback.Bounced && got.Cause == "" || strings.Contains(got.Cause, "@") {
		t.Errorf("the cause is %q", got.Cause)
	}
	got.Cause, got.At = "", want.At
	if got != want {
		t.Errorf("%+v, not %+v", got, want)
	}
}

// refuses fails unless the source refuses the call as not its provider's.
func refuses(t *testing.T, about string, s source, h http.Header, u *url.URL, body string) {
	t.Helper()
	if call, err := s.Read(h, u, []byte(body)); !errors.Is(err, feedback.ErrUnverified) || len(call.Reports) > 0 {
		t.Errorf("%s: %+v, %v", about, call, err)
	}
}
