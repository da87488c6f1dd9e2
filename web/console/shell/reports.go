package shell

import (
	"context"
	"net/http"
	"time"

	"dropbell/domain/fault"
)

// Replica is a second database, a little behind the first, from which pages that
// only report are read.
type Replica interface {
	// Begin begins a report for a member who has changed something last at the
	// position after, empty for nothing. In the context that it returns reports
	// are read from the replica if that shows the change. The context ends when
	// the replica fails.
	Begin(ctx context.Context, after string) (context.Context, ReportSource)
	// Position returns a position behind everything that is stored by now; one
	// that no replica reaches if it cannot be told.
	Position(ctx context.Context) string
}

// A ReportSource is where the reports of one request are read.
type ReportSource interface {
	// Lag returns how old the data is that was read, at most, and whether any was
	// read from the replica.
	Lag() (lag time.Duration, used bool)
	// Again says that the request is answered from the first database after all.
	Again()
	End()
}

// Report is a route that decides nothing by what it reads: where there is a
// replica, its page or file may be read from that.
func Report(r Route) Route {
	r.Reports = true
	return r
}

// wroteKey is where a session keeps the position of the member's last change.
const wroteKey = "wrote"

type sourceKey struct{}

// report answers from the replica, or from the first database if the replica
// does not answer or lacks what is asked for.
func (sh *Shell) report(w http.ResponseWriter, r *http.Request, serve Handler) error {
	ctx, source := sh.replica.Begin(r.Context(), sh.Sessions.GetString(r.Context(), wroteKey))
	defer source.End()
	err := serve(w, r.WithContext(context.WithValue(ctx, sourceKey{}, source)))
	if _, used := source.Lag(); err == nil || !used || r.Context().Err() != nil {
		return err
	}
	kind := fault.KindOf(err)
	if ctx.Err() == nil && kind != fault.Unavailable && kind != fault.NotFound {
		return err
	}
	// Nothing was sent yet: pages are drawn to their end first, and a file that
	// breaks off ends the connection instead.
	source.Again()
	return serve(w, r)
}

// behind is how old the data is that the request's page shows, at most.
func behind(r *http.Request) time.Duration {
	source, _ := r.Context().Value(sourceKey{}).(ReportSource)
	if source == nil {
		return 0
	}
	lag, used := source.Lag()
	if !used {
		return 0
	}
	return lag
}

// A noting writer keeps the position of the member's change in the session
// before the answer begins, since the session is stored then.
type noting struct {
	http.ResponseWriter
	note func()
}

func (n *noting) WriteHeader(status int) { n.noteOnce(); n.ResponseWriter.WriteHeader(status) }

func (n *noting) Write(p []byte) (int, error) { n.noteOnce(); return n.ResponseWriter.Write(p) }

// Unwrap is for [http.ResponseController].
func (n *noting) Unwrap() http.ResponseWriter { return n.ResponseWriter }

func (n *noting) noteOnce() {
	if n.note != nil {
		n.note()
		n.note = nil
	}
}

// noteChange returns a writer after whose answer the member's next reports show
// what the request has changed.
func (sh *Shell) noteChange(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	return &noting{w, func() {
		if sh.SignedInAs(r) != "" {
			sh.Sessions.Put(r.Context(), wroteKey, sh.replica.Position(r.Context()))
		}
	}}
}
