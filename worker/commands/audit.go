package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"dropbell/adapters/config"
	"dropbell/adapters/postgres"
	"dropbell/adapters/redis"
	"dropbell/adapters/redisgate"
	"dropbell/app"
	"dropbell/domain/claim/gate"
	"dropbell/domain/delivery"
	"dropbell/domain/template"
	"dropbell/migrations"
)

// A difference is the error of an audit that found one: the rows and the stored sums disagree.
// No other outcome of an audit has its exit code.
type difference string

// Error is the difference in words.
func (d difference) Error() string { return string(d) }

var errAuditUsage = errors.New("usage: worker audit TEMPLATE, or worker audit campaign CAMPAIGN, which are numbers, or worker audit notices [DAY]")

// audit computes the figures that args name from the rows and prints them. The error is a
// [difference] if the stored figures differ. Any other error means that the audit could not be
// done and proves nothing.
func audit(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error {
	if len(args) > 0 && args[0] == "notices" {
		return auditNotices(ctx, args[1:], getenv, out)
	}
	ofCampaign := len(args) == 2 && args[0] == "campaign"
	if len(args) != 1 && !ofCampaign {
		return config.Mistake{Err: errAuditUsage}
	}
	id, err := strconv.ParseInt(args[len(args)-1], 10, 64)
	if err != nil || id <= 0 {
		return config.Mistake{Err: fmt.Errorf("%q is no id; %w", args[len(args)-1], errAuditUsage)}
	}
	names := databaseVariables()
	if getenv("REDIS_URL") != "" && !ofCampaign {
		names = append(names, "REDIS_URL")
	}
	cfg, err := config.LoadOnly(getenv, names...)
	if err != nil {
		return config.Mistake{Err: err}
	}
	what, look := "template", func(stores app.Stores) error { return auditTemplate(ctx, stores, id, cfg.RedisURL, out) }
	if ofCampaign {
		what, look = "campaign", func(stores app.Stores) error { return auditCampaign(ctx, stores, id, out) }
	}
	return found(withDatabase(ctx, cfg, look), fmt.Sprintf("%s %d was", what, id))
}

// found distinguishes a difference from an audit that could not read.
func found(err error, what string) error {
	if _, off := errors.AsType[difference](err); off || err == nil {
		return err
	}
	return config.Mistake{Err: fmt.Errorf("%s not audited: %w", what, err)}
}

// databaseVariables say how commands reach the database.
func databaseVariables() []string { return []string{"DATABASE_URL", "DATABASE_POOL_MODE"} }

// withDatabase calls look with a database that has all migrations.
func withDatabase(ctx context.Context, cfg config.Config, look func(app.Stores) error) error {
	db, err := postgres.Open(ctx, cfg.DatabaseURL, postgres.Options{AppName: "dropbell-audit", TransactionPool: cfg.TransactionPool()})
	if err != nil {
		return err
	}
	defer db.Close()
	needs, err := migrations.Released.Latest()
	if err != nil {
		return err
	}
	if err := db.Ready(ctx, needs); err != nil {
		return err
	}
	return look(app.NewStores(db))
}

// auditTemplate prints a template's balance sheet and its stock.
func auditTemplate(ctx context.Context, stores app.Stores, id int64, redisURL string, out io.Writer) error {
	t, err := stores.Templates.Template(ctx, id)
	if err != nil {
		return err
	}
	lines, err := stores.Boards.Balance(ctx, id)
	if err != nil {
		return err
	}
	kept, err := stores.Boards.KeptBalance(ctx, id)
	if err != nil {
		return err
	}
	if len(kept) > 0 {
		fmt.Fprintf(out, "%d lines are figures that were kept: the reservations, batches and outcomes that they were counted from are past their retention\n", len(kept))
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "due\tchannel\treserved\tsent\tskipped\texpired\tdead\tin flight\tdifference\t")
	var off int64
	for _, l := range append(kept, lines...) {
		if l.Kept.Reserved == 0 && l.Counted == (delivery.Counts{}) {
			continue
		}
		c := l.Counted
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", l.Slot.DueAt.Format("2006-01-02 15:04:05"), l.Channel,
			l.Kept.Reserved, c.Sent, c.Skipped, c.Expired, c.Dead, c.InFlight, l.Difference())
		off += l.Difference()
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := auditStock(ctx, stores, t, redisURL, out); err != nil {
		return err
	}
	if off != 0 {
		return difference(fmt.Sprintf("the balance sheet of template %d is off by %d", id, off))
	}
	if err := auditDraw(ctx, stores, t, out); err != nil {
		return err
	}
	for _, f := range stores.Figures() {
		n, err := f.Off(ctx, id)
		if err != nil {
			return err
		}
		if n != 0 {
			return difference(fmt.Sprintf("the figures of %s of template %d are off by %d; worker replaces them within ten minutes", f.Name, id, n))
		}
	}
	fmt.Fprintln(out, "figures of reservations and coupons: as the rows say")
	fmt.Fprintf(out, "template %d balances\n", id)
	return nil
}

// lookFor bounds a look at a Redis that does not answer.
const lookFor = 10 * time.Second

// auditStock counts the coupons. If a claim gate decides the drop's claims and Redis can be
// read, the count is compared with the gate's ledger. Otherwise auditStock prints that the gate
// was not compared: the count alone proves less.
func auditStock(ctx context.Context, stores app.Stores, t template.Template, redisURL string, out io.Writer) error {
	counted, err := stores.StockLedgers.Ledger(ctx, t.ID)
	if err != nil {
		return err
	}
	gate := gate.Accounts{Plans: stores.Gates}
	if redisURL != "" && t.ClaimMode == template.Gate {
		client, err := redis.Open(redisURL)
		if err != nil {
			return err
		}
		defer func() { _ = client.Close() }()
		gate.Shards = redisgate.NewShards(client)
	}
	look, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	seen, err := gate.Of(look, t)
	if err != nil {
		return err
	}
	counted = seen.Settle(counted)
	kept := ""
	if counted.Held > 0 {
		kept = fmt.Sprintf(" + %d kept for users who wait", counted.Held)
	}
	fmt.Fprintf(out, "stock: %d in all = %d available + %d being written + %d issued%s; %d returned to stock, %d counted per user, %d users over the limit\n",
		counted.Total, counted.OnSale, counted.Writing, counted.Issued, kept, counted.Returned, counted.PerUser, counted.OverLimit)
	fmt.Fprintln(out, gateWords(seen, redisURL))
	early, err := stores.Gates.Early(ctx, t.ID)
	if err != nil {
		return err
	}
	if early > 0 {
		fmt.Fprintf(out, "gate: %d claims were accepted before the opening, by the wrong clock of a Redis, and refused when they were written\n", early)
	}
	if t.Waits() {
		if err := auditWaitlist(ctx, stores, t.ID, out); err != nil {
			return err
		}
	}
	if n := counted.Difference(); n != 0 {
		return difference(fmt.Sprintf("the stock ledger of template %d is off by %d", t.ID, n))
	}
	return nil
}

// auditWaitlist counts the users of a waitlist.
func auditWaitlist(ctx context.Context, stores app.Stores, id int64, out io.Writer) error {
	s, off, err := stores.StockLedgers.WaitsCounted(ctx, id)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "waitlist: %d joined = %d filled + %d waiting (%d of them with an offer) + %d lapsed + %d left + %d skipped\n", s.Joined, s.Filled, s.Waiting, s.Offered, s.Lapsed, s.Left, s.Skipped)
	if off += s.Difference(); off != 0 {
		return difference(fmt.Sprintf("the waitlist of template %d is off by %d", id, off))
	}
	return nil
}

// gateWords describes the state of the gate's shards in the audit.
func gateWords(a gate.Account, redisURL string) string {
	switch {
	case a.Plan.Shards == 0:
		return "gate: none; the database alone decides claims"
	case a.Plan.State == gate.Retired:
		return "gate: retired; everything is in the database"
	case a.Away && redisURL == "":
		return "gate: its shards were NOT read, since REDIS_URL is not set; available and being written are one number"
	case a.Away:
		return "gate: its shards could NOT be read, since Redis does not answer; available and being written are one number"
	case !a.Seen():
		return "gate: its shards are being built; until they are active nothing is available, and only the database was compared"
	}
	return fmt.Sprintf("gate: %d shards of epoch %d were read: %d available, %d being written", len(a.Shards), a.Plan.Epoch, a.OnSale, a.Writing)
}
