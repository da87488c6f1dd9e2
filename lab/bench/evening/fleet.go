package evening

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/emersion/go-smtp"

	"dropbell/adapters/asynq"
	"dropbell/domain/task"
	"dropbell/lab/bench/stack"
)

// fleet is the workers, the queue of their timers and the provider they call.
type fleet struct {
	workers []*stack.Process
	queue   *asynq.Queue
	sink    sink
	close   []func()
}

// sink has the addresses of the provider.
type sink struct{ mail, sms, webhook string }

func startFleet(ctx context.Context, s *stack.Stack, o options) (*fleet, error) {
	fl := &fleet{}
	if err := fl.startSink(); err != nil {
		fl.stop()
		return nil, err
	}
	env := []string{"SMTP_URL=" + fl.sink.mail, "SMS_URL=" + fl.sink.sms, "SMS_TOKEN=bench", "WEBHOOK_URL=" + fl.sink.webhook,
		"WEBHOOK_SECRET=whsec_YSBzZWNyZXQgdGhhdCBvbmx5IHRoaXMgYmVuY2htYXJrIGtub3dz", "PROVIDERS_KEY=" + sealKey, "PROVIDERS_PRIVATE=yes"}
	if err := makeShops(ctx, s, o.shops, fl.sink); err != nil {
		fl.stop()
		return nil, err
	}
	var err error
	bin := o.worker
	if bin == "" {
		dir, err := os.MkdirTemp("", "dropbell-evening-")
		if err != nil {
			return nil, err
		}
		fl.close = append(fl.close, func() { _ = os.RemoveAll(dir) })
		if bin, err = stack.Build(ctx, dir, "worker"); err != nil {
			fl.stop()
			return nil, err
		}
	}
	for range o.workers {
		p, err := s.Launch(bin, stack.Launch{Env: env})
		if err == nil {
			fl.workers = append(fl.workers, p)
			err = p.Ready(ctx, 30*time.Second)
		}
		if err != nil {
			fl.stop()
			return nil, err
		}
	}
	fl.queue, err = asynq.NewQueue(s.RedisURL, slog.New(slog.DiscardHandler))
	if err != nil {
		fl.stop()
	}
	return fl, err
}

func (fl *fleet) stop() {
	for _, p := range fl.workers {
		p.Stop()
	}
	for _, f := range fl.close {
		f()
	}
}

func (fl *fleet) cpu() (sum time.Duration, err error) {
	for _, p := range fl.workers {
		used, err := p.CPU()
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

// startSink starts a provider of mails, texts and webhooks that accepts every message and keeps
// none.
func (fl *fleet) startSink() error {
	mails, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	calls, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /hook", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /sms", takeTexts)
	web := &http.Server{Handler: mux}
	mail := smtp.NewServer(mailbox{})
	mail.Domain, mail.AllowInsecureAuth = "bench.example", true
	go func() { _ = web.Serve(calls) }()
	go func() { _ = mail.Serve(mails) }()
	fl.close = append(fl.close, func() { _ = errors.Join(web.Close(), mail.Close()) })
	fl.sink = sink{"smtp://" + mails.Addr().String() + "?from=drops@shop.example", "http://" + calls.Addr().String() + "/sms", "http://" + calls.Addr().String() + "/hook"}
	return nil
}

// takeTexts answers that every text of the call is accepted.
func takeTexts(w http.ResponseWriter, r *http.Request) {
	var call struct {
		Messages []json.RawMessage `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&call); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	type result struct {
		Status string `json:"status"`
	}
	results := make([]result, len(call.Messages))
	for i := range results {
		results[i].Status = "accepted"
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"results": results})
}

// mailbox is a mail server that takes everything and keeps nothing.
type mailbox struct{}

func (mailbox) NewSession(*smtp.Conn) (smtp.Session, error) { return mailbox{}, nil }
func (mailbox) Mail(string, *smtp.MailOptions) error        { return nil }
func (mailbox) Rcpt(string, *smtp.RcptOptions) error        { return nil }
func (mailbox) Reset()                                      {}
func (mailbox) Logout() error                               { return nil }
func (mailbox) Data(r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return err
}

// once fires one shape and measures until each recipient has an outcome.
func (f *filling) once(ctx context.Context, fl *fleet, sh shape) (r result, err error) {
	due, slots, err := f.arm(ctx, sh)
	if err != nil {
		return r, err
	}
	timers := make([]task.Task, len(slots))
	for i, id := range slots {
		timers[i] = task.Fire(id, due)
	}
	if err := fl.queue.Enqueue(ctx, timers...); err != nil {
		return r, err
	}
	if late := time.Since(due); late > -time.Second {
		return r, fmt.Errorf("the timers were queued %s after the instant", late+time.Second)
	}
	if err := f.resetStatements(ctx); err != nil {
		return r, err
	}
	before, err := f.used(ctx, fl)
	if err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeout(ctx, 4*time.Minute) // all must be recorded before the opening
	defer cancel()
	if err := stack.Until(ctx, 100*time.Millisecond, func() (done bool, err error) {
		err = f.SQL.QueryRow(ctx, `select not exists (select from slots where state in ('waiting', 'firing', 'sending'))`).Scan(&done)
		return done, err
	}); err != nil {
		return r, err
	}
	after, err := f.used(ctx, fl)
	if err != nil {
		return r, err
	}
	r.worker, r.postgres, r.redis = after[0]-before[0], after[1]-before[1], after[2]-before[2]
	for _, p := range fl.workers {
		_, peak := p.Memory()
		r.peakMiB = max(r.peakMiB, peak)
	}
	if r.statements, err = f.slowestStatements(ctx); err != nil {
		return r, err
	}
	return r, errors.Join(f.measure(ctx, &r), f.account(ctx, sh))
}

// used is the processor time of workers, PostgreSQL and Redis.
func (f *filling) used(ctx context.Context, fl *fleet) (t [3]time.Duration, err error) {
	var errs [3]error
	t[0], errs[0] = fl.cpu()
	t[1], errs[1] = f.PostgresCPU(ctx)
	t[2], errs[2] = f.RedisCPU(ctx)
	return t, errors.Join(errs[:]...)
}

func (f *filling) measure(ctx context.Context, r *result) error {
	return f.SQL.QueryRow(ctx, `
		select (select max(cut_at - due_at) from slots), (select max(finished_at - due_at) from slots),
			coalesce(max(finished_at - due_at) filter (where channel = 0), interval '0'), max(finished_at - due_at) from batches`).
		Scan(&r.cut, &r.finished, &r.app, &r.recorded)
}

// account returns an error unless the balance of every drop adds up: each user that reserved is
// in exactly one batch, users that opted out are skipped, and all other users are sent to.
func (f *filling) account(ctx context.Context, sh shape) error {
	want := map[bool]int{} // by opted out
	for i := range sh.drops * sh.reservers {
		want[hundredth(f.reserver(i)) < optedOut]++
	}
	var sent, skipped, wrong int
	err := f.SQL.QueryRow(ctx, `
		select coalesce(sum(b.sent), 0), coalesce(sum(b.skipped), 0), count(*) filter (where b.due is distinct from $1 or b.sent + b.skipped <> $1
			or (b.due, b.sent, b.skipped) is distinct from (r.due, r.sent, r.skipped))
		from slots s
			left join (select owner_id, sum(due_count) due, sum(sent_count) sent, sum(skipped_count) skipped from batches group by 1) b on b.owner_id = s.id
			left join (select slot_id, sum(reserved) due, sum(sent) sent, sum(skipped) skipped from slot_results group by 1) r on r.slot_id = s.id`,
		sh.reservers).Scan(&sent, &skipped, &wrong)
	if err == nil && (wrong > 0 || sent != want[false] || skipped != want[true]) {
		err = fmt.Errorf("%d sent and %d skipped, expected %d and %d; %d drops do not add up", sent, skipped, want[false], want[true], wrong)
	}
	return err
}
