package middleware

import (
	"io"
	"net/http"
	"time"
)

const (
	// bodyTimeout is how long a client may take to send a body, whether or not the handler reads
	// it: net/http reads an unread body to its end before it answers.
	bodyTimeout = 10 * time.Second
	// bodyStall is how long a client of [Patient] may send nothing.
	bodyStall = 30 * time.Second
)

// bodies ends requests whose body comes too slowly. Handlers of bodies larger than a form replace
// the deadline while they read; see [Patient].
func bodies(timeout time.Duration) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ContentLength != 0 {
				b := &timedBody{r.Body, http.NewResponseController(w)}
				// Not every writer has deadlines, and none is needed then.
				_ = b.control.SetReadDeadline(time.Now().Add(timeout))
				r.Body = b
			}
			next.ServeHTTP(w, r)
		})
	}
}

// BodyTimed reports whether the time for r's body is limited already.
func BodyTimed(r *http.Request) bool {
	_, timed := r.Body.(*timedBody)
	return timed
}

type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

// Read clears the deadline with the last byte: it would otherwise end the request while it is being
// answered.
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// Patient extends the deadline of an upload for as long as its client continues
// to send.
func Patient(w http.ResponseWriter, r *http.Request) {
	r.Body = &patientBody{r.Body, http.NewResponseController(w)}
}

type patientBody struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b *patientBody) Read(p []byte) (int, error) {
	at := time.Now().Add(bodyStall)
	_ = b.control.SetReadDeadline(at)
	_ = b.control.SetWriteDeadline(at.Add(bodyStall))
	return b.ReadCloser.Read(p)
}
