package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"dropbell/adapters/config"
	"dropbell/adapters/webhook"
	"dropbell/domain/pause"
)

const listenUsage = `dropbell listen posts a shop's events to a server on your machine, signed as webhooks are.

  dropbell listen --shop 10 --forward http://localhost:3000/hooks

It waits for events at the server, prints a line for each, and after a broken connection
goes on where it was. An event that your server does not answer with 2xx is posted again,
after 1 to 30 seconds, until it is; those behind it wait. Of two events of one subject the later has the greater
sequence, as it may be stored before the other one. To skip
one, end the command and begin again with --after and the number in the event's id. Events of the
last ten minutes are kept for it while it is away.

`

const (
	// askEvery is the first pause before a server that does not answer is asked again, and
	// longestWait the longest pause. A server that answers at once without events is asked again
	// after askEvery.
	askEvery    = time.Second
	longestWait = 10 * time.Second
	// longestRetry is the longest pause before a failed event is posted again.
	longestRetry = 30 * time.Second
	// renewEvery is how often the server is asked while an event is posted again and again. The
	// question makes the server keep the following events.
	renewEvery = time.Minute
	// waitAtServer is for how many seconds the server waits for an event.
	waitAtServer = "10"
)

// listener forwards the events of a shop.
type listener struct {
	server, key, forward string
	shop, after          string
	events               string
	secret               []byte
	out                  io.Writer
	client               *http.Client
	poster               *webhook.Poster
	pause                time.Duration // askEvery
	// impatient is set for a server that does not know how to wait.
	impatient bool
}

// listen runs the command until ctx ends.
func listen(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error {
	l, shown, err := newListener(args, getenv, out)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return config.Mistake{Err: err}
	}
	defer l.poster.Close()
	fmt.Fprintf(out, "Forwarding events of shop %s from %s to %s.\nVerify with the secret %s\n", l.shop, l.server, l.forward, shown)
	return l.run(ctx)
}

func newListener(args []string, getenv func(string) string, out io.Writer) (*listener, string, error) {
	l := &listener{out: out, client: &http.Client{Timeout: 30 * time.Second}, pause: askEvery}
	flags := flag.NewFlagSet("listen", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.Usage = func() { fmt.Fprint(out, listenUsage); flags.PrintDefaults() }
	flags.StringVar(&l.forward, "forward", "", "`address` that events are posted to; required")
	flags.StringVar(&l.shop, "shop", "", "`number` of the shop; required")
	flags.StringVar(&l.server, "server", "http://127.0.0.1:8080", "`address` of Dropbell")
	flags.StringVar(&l.key, "key", "", "service `key` with the scope admin; default: the variable ADMIN_API_KEY")
	flags.StringVar(&l.events, "events", "", "only these `types`, separated by commas, such as coupon.used; default: all")
	flags.StringVar(&l.after, "after", "", "`position` to go on from, which the command prints at its end; default: the present")
	secret := flags.String("secret", "", "`secret` that signs, whsec_…; default: a new one")
	if err := flags.Parse(args); err != nil {
		return nil, "", err
	}
	if l.key == "" {
		l.key = getenv("ADMIN_API_KEY")
	}
	for name, value := range map[string]string{"--forward": l.forward, "--server": l.server} {
		if u, err := url.Parse(value); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, "", fmt.Errorf("%s must be an http or https address; see dropbell listen --help", name)
		}
	}
	switch {
	case flags.NArg() > 0:
		return nil, "", fmt.Errorf("unknown argument %q; see dropbell listen --help", flags.Arg(0))
	case l.shop == "":
		return nil, "", errors.New("--shop is required; see dropbell listen --help")
	case l.key == "":
		return nil, "", errors.New("give --key or ADMIN_API_KEY; see dropbell listen --help")
	}
	if *secret == "" {
		l.secret = make([]byte, 32)
		_, _ = rand.Read(l.secret) // never fails
		*secret = "whsec_" + base64.StdEncoding.EncodeToString(l.secret)
	} else if key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(*secret, "whsec_")); err != nil || len(key) == 0 {
		return nil, "", errors.New("--secret must be whsec_ followed by base64; see dropbell listen --help")
	} else {
		l.secret = key
	}
	l.server = strings.TrimRight(l.server, "/")
	l.poster = webhook.NewPoster(0, true)
	return l, *secret, nil
}

// page is an answer of GET /admin/events.
type page struct {
	Events []pageEvent
	Next   string
}

type pageEvent struct{ ID, Type, Payload string }

// errRefused is an answer that stays the same however often the server is asked.
var errRefused = errors.New("the server refused")

// run forwards events until ctx ends. It returns an error only if the server refuses the request
// itself.
func (l *listener) run(ctx context.Context) error {
	wait, began := l.pause, l.after
	for ctx.Err() == nil {
		asked := time.Now()
		p, err := l.ask(ctx)
		switch {
		case errors.Is(err, errRefused):
			if l.after != began { // it has got on
				l.sayPosition()
			}
			return config.Mistake{Err: err}
		case ctx.Err() != nil:
		case err != nil:
			fmt.Fprintf(l.out, "%v; trying again\n", err)
			wait = min(2*wait, longestWait)
		default:
			wait = l.pause
			l.pass(ctx, p)
			if len(p.Events) > 0 || time.Since(asked) > l.pause {
				continue
			}
		}
		pause.For(ctx, wait)
	}
	l.sayPosition()
	return nil
}

func (l *listener) sayPosition() {
	if l.after != "" {
		fmt.Fprintf(l.out, "To go on from here: --after %s\n", l.after)
	}
}

// pass posts the events one after the other. After each accepted event it moves the position
// behind this event.
func (l *listener) pass(ctx context.Context, p page) {
	for _, e := range p.Events {
		if !l.post(ctx, e) {
			return
		}
		l.after = strings.TrimPrefix(e.ID, "msg_")
	}
	l.after = p.Next
}

// post posts an event until it is accepted; it returns false if ctx ended before.
func (l *listener) post(ctx context.Context, e pageEvent) bool {
	renewed := time.Now()
	for wait := l.pause; ctx.Err() == nil; wait = min(2*wait, longestRetry) {
		a := l.poster.Post(context.WithoutCancel(ctx), l.forward, e.ID, time.Now(), []byte(e.Payload), [][]byte{l.secret})
		outcome := fmt.Sprintf("%d", a.Status)
		if a.Error != "" {
			outcome = a.Error
		}
		again := max(wait, min(a.RetryAfter, longestRetry))
		if !a.OK() {
			outcome += fmt.Sprintf(", again in %v", again)
		}
		fmt.Fprintf(l.out, "%s  %-22s %s  -> %s (%d ms)\n", time.Now().Format(time.TimeOnly), e.Type, e.ID, outcome, a.Took.Milliseconds())
		if a.OK() {
			return true
		}
		if time.Since(renewed) > renewEvery {
			_, _ = l.once(ctx, false) // its events are read again later
			renewed = time.Now()
		}
		pause.For(ctx, again)
	}
	return false
}

// ask returns the events behind the position, as soon as there are any.
func (l *listener) ask(ctx context.Context) (page, error) {
	p, err := l.once(ctx, !l.impatient && l.after != "")
	if errors.Is(err, errRefused) && !l.impatient && l.after != "" {
		// The server may be of a version that does not wait; it refuses the parameter.
		if p, again := l.once(ctx, false); !errors.Is(again, errRefused) {
			l.impatient = again == nil
			return p, again
		}
	}
	return p, err
}

// once asks the server one time.
func (l *listener) once(ctx context.Context, wait bool) (p page, err error) {
	query := url.Values{"shop": {l.shop}}
	if wait {
		query.Set("wait", waitAtServer)
	}
	if l.events != "" {
		query.Set("types", l.events)
	}
	if l.after != "" {
		query.Set("after", l.after)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.server+"/api/v1/admin/events?"+query.Encode(), nil)
	if err != nil {
		return p, err
	}
	req.Header.Set("Authorization", "Bearer "+l.key)
	resp, err := l.client.Do(req)
	if err != nil {
		return p, fmt.Errorf("%s does not answer", l.server)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	switch {
	case err != nil:
		return p, errors.New("the connection broke")
	case resp.StatusCode == http.StatusOK:
		return p, json.Unmarshal(body, &p)
	case resp.StatusCode >= 500, resp.StatusCode == http.StatusTooManyRequests:
		return p, fmt.Errorf("%s answered HTTP %d", l.server, resp.StatusCode)
	}
	var problem struct{ Detail string }
	_ = json.Unmarshal(body, &problem)
	return p, fmt.Errorf("%w: HTTP %d %s", errRefused, resp.StatusCode, problem.Detail)
}
