package shell

import (
	"context"
	"net/http"
	"time"

	"dropbell/domain/fault"
)

// Replica is a second database with a small replication lag, from which reports are read.
type Replica interface {
	// Begin begins a report. after is the position of the member's last change, empty if there is
	// none. In the returned context reports are read from the replica if the replica has that
	// change. The context ends when the replica fails.
	Begin(ctx context.Context, after string) (context.Context, ReportSource)
	// Position returns a position after all data stored by now. If the position cannot be read, it
	// returns a position that no replica reaches.
	Position(ctx context.Context) string
}

// A ReportSource is the database of the reports of one request.
type ReportSource interface {
	// Lag returns the greatest age of the data that was read, and whether any data was read from
	// the replica.
	Lag() (lag time.Duration, used bool)
	// Again says that the request is answered again, from the first database.
	Again()
	End()
}

// Report marks a route whose result decides nothing. Its page or file may be read from the replica,
// if there is a replica.
func Report(r Route) Route {
	r.Reports = true
	return r
}

// wroteKey is where a session keeps the position of the member's last change.
const wroteKey = "wrote"

type sourceKey struct{}

// report answers from the replica. If the replica does not answer or has no such object yet, it
// answers from the first database.
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
	// Nothing was sent yet: pages are rendered completely first, and a file that fails halfway ends
	// the connection.
	source.Again()
	return serve(w, r)
}

// behind returns the greatest age of the data on the request's page.
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

// A noting writer stores the position of the member's change in the session before the answer
// begins, because the session is stored at that time.
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

// noteChange returns a writer that makes the member's next reports show the changes of this
// request.
func (sh *Shell) noteChange(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	return &noting{w, func() {
		if sh.SignedInAs(r) != "" {
			sh.Sessions.Put(r.Context(), wroteKey, sh.replica.Position(r.Context()))
		}
	}}
}
