package drops_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// readReceipt checks the digest. It returns the lines about the slot, the rows,
// and the sums of the rows that the receipt states.
func readReceipt(w *pgtest.Fixture, slotID int64) (about map[string]string, rows map[string][]string, counted map[string]string) {
	w.Helper()
	receipts := &reminder.Receipts{Store: w.Boards}
	var text bytes.Buffer
	w.Must(receipts.Write(w.Context(), staff.Actor{Role: staff.Viewer, Shops: []int64{10}}, slotID, &text))
	body, digest, ok := strings.Cut(text.String(), "# sha256,")
	if !ok || digest != fmt.Sprintf("%x\n", sha256.Sum256([]byte(body))) {
		w.Errorf("digest %q", digest)
	}
	about, rows, counted = map[string]string{}, map[string][]string{}, map[string]string{}
	sums := map[string]map[string]int{}
	for line := range strings.Lines(body) {
		line = strings.TrimSuffix(line, "\n")
		f := strings.Split(line, ",")
		switch {
		case strings.HasPrefix(line, "# balance,"):
			about["balance "+f[1]] = strings.Join(f[2:], ",")
		case strings.HasPrefix(line, "# counted,"):
			counted[f[1]] = strings.Join(f[2:], ",")
		case strings.HasPrefix(line, "# "):
			about[f[0][2:]] = f[1]
		case f[0] == "user_id":
		default:
			key := f[0] + " " + f[1]
			if _, twice := rows[key]; twice || len(f) != 7 {
				w.Errorf("%s stands twice or is malformed: %q", key, line)
			}
			rows[key] = f
			if sums[f[1]] == nil {
				sums[f[1]] = map[string]int{}
			}
			sums[f[1]][f[2]]++
		}
	}
	for c, s := range sums { // counted by this test, not by the receipt
		n := 0
		for _, k := range s {
			n += k
		}
		want := fmt.Sprintf("reserved=%d,sent=%d,skipped=%d,expired=%d,dead=%d,in_flight=%d", n, s["sent"]+s["recovered"], s["skipped"], s["expired"],
			s["dead"]+s["discarded"], s["failed"]+s["in_flight"])
		if counted[c] != want {
			w.Errorf("%s: counted %s, the rows are %s", c, counted[c], want)
		}
	}
	return about, rows, counted
}

// TestReceiptOfMixedOutcomes: a slot of 3,000 users has every kind of outcome.
// The rows add up to the balance at all times.
func TestReceiptOfMixedOutcomes(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	m.Daemon.Policy = delivery.Policy{MaxAttempts: 2, Base: time.Second, Max: time.Second}
	tpl := m.Published(2 * time.Hour)
	m.Seed(tpl, 3000, append(pgtest.Reminders(delivery.Webhook, 5), pgtest.Reminders(delivery.App, 5)...)...)
	m.Exec(`insert into users (id, opt_outs) select n * 7919 + 1, 16 from generate_series(0, 2999, 100) as n`)
	number := func(id user.ID) int64 { return (int64(id) - 1) / 7919 }
	m.Hook.Answer = func(msg delivery.Message, times int) delivery.Result {
		switch i := number(msg.To.ID); {
		case i%100 == 1:
			return delivery.Result{Status: delivery.Permanent, Detail: "unknown, \"user\""}
		case i%100 == 2 && times == 1:
			return delivery.Result{Status: delivery.Transient, Detail: "status 500"}
		case i%100 == 3:
			return delivery.Result{Status: delivery.Throttled, After: time.Minute}
		}
		return delivery.Result{Status: delivery.Delivered}
	}
	sl := m.CutSlot(tpl, 1, 1000)
	matches := func(when string) map[string][]string {
		t.Helper()
		about, rows, counted := readReceipt(m.Fixture, sl.ID)
		if len(rows) != 6000 {
			t.Errorf("%s: %d rows", when, len(rows))
		}
		for c, sum := range m.Balanced(tpl) {
			want := fmt.Sprintf("reserved=%d,sent=%d,skipped=%d,expired=%d,dead=%d,in_flight=%d", sum.Reserved, sum.Sent, sum.Skipped, sum.Expired, sum.Dead, sum.InFlight)
			if sum.Reserved > 0 && (counted[c.String()] != want || about["balance "+c.String()] != want) {
				t.Errorf("%s, %s: counted %s, head %s, balance %s", when, c, counted[c.String()], about["balance "+c.String()], want)
			}
		}
		return rows
	}
	matches("fired")
	m.Must(m.Daemon.RunNext(t.Context(), delivery.Webhook))
	matches("a third is out")
	m.Drain()
	matches("some wait for a retry")
	m.Exec(`update exceptions set next_retry_at = now() - interval '1 second' where reason = $1`, delivery.ReasonProvider)
	m.Exec(`update batches set next_run_at = now() where state = 'ready'`)
	m.Drain()
	m.Exec(`update batches set worthless_after = clock_timestamp(), next_run_at = clock_timestamp() where state = 'ready'`)
	m.Drain()
	m.Finish(tpl)
	m.Work(delivery.Discard, delivery.DeadLetterFilter{UserID: 7919 + 1}, 0)
	rows := matches("finished")
	for i, want := range map[int64]string{0: "skipped,opted_out,0", 1: "discarded,discarded_by_operator,1", 101: "dead,refused_by_provider,1",
		2: "recovered,provider_error,1", 3: "expired,provider_throttled,0", 4: "sent,,0"} {
		row := rows[fmt.Sprintf("%d webhook", i*7919+1)]
		if len(row) != 7 || strings.Join(row[2:5], ",") != want {
			t.Errorf("user %d: %v, want %s", i, row, want)
			continue
		}
		if at, err := time.Parse(time.RFC3339Nano, row[5]); err != nil || time.Since(at) > time.Minute || time.Since(at) < 0 {
			t.Errorf("user %d was recorded at %q", i, row[5])
		}
	}
	about, _, _ := readReceipt(m.Fixture, sl.ID)
	board, err := m.Boards.Board(t.Context(), tpl.ID)
	m.Must(err)
	for _, r := range board.Rows {
		if r.ID != sl.ID {
			continue
		}
		for name, at := range map[string]*time.Time{"fired_at": r.FiredAt, "cut_at": r.CutAt, "finished_at": r.FinishedAt, "planned_due": &r.DueAt, "opens_at": &r.OpensAt} {
			if at == nil || about[name] != at.UTC().Format(time.RFC3339Nano) {
				t.Errorf("%s is %q, want %v", name, about[name], at)
			}
		}
	}
	if about["template"] != fmt.Sprint(tpl.ID) || about["slot"] != "1" || about["state"] != "finished" {
		t.Errorf("%v", about)
	}
}

// TestReceiptOfStoppedAndEmptySlots: the receipts of a slot without recipients
// and of a stopped slot.
func TestReceiptOfStoppedAndEmptySlots(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	tpl := m.Published(2 * time.Hour)
	m.ReserveAll(tpl, pgtest.Users(1, 20), pgtest.Reminders(delivery.App, 60)...)
	waiting := m.Slot(tpl, 1)
	if about, rows, _ := readReceipt(m.Fixture, waiting.ID); len(rows) != 0 || about["state"] != "waiting" || about["fired_at"] != "" {
		t.Errorf("%v %v", about, rows)
	}
	sl := m.CutSlot(tpl, 12, 8)
	m.Do(tpl, "cancel")
	m.Drain()
	m.Finish(tpl)
	about, rows, counted := readReceipt(m.Fixture, sl.ID)
	if about["stop_reason"] != delivery.ReasonCancelled || counted["app"] != "reserved=20,sent=0,skipped=20,expired=0,dead=0,in_flight=0" {
		t.Errorf("%v %v", about, counted)
	}
	if row := rows["7 app"]; len(row) != 7 || row[3] != delivery.ReasonCancelled || row[5] == "" {
		t.Errorf("%v", row)
	}
}

func TestReceiptIsForThoseWhoMaySeeTheShop(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	tpl := m.Published(2 * time.Hour)
	sl := m.Slot(tpl, 1)
	receipts := &reminder.Receipts{Store: m.Boards}
	var text bytes.Buffer
	for _, by := range []staff.Actor{{}, {Role: staff.Admin, Shops: []int64{11}}} {
		if err := receipts.Write(t.Context(), by, sl.ID, &text); !errors.Is(err, staff.ErrForbidden) {
			t.Errorf("%+v: %v", by, err)
		}
	}
	if err := receipts.Write(t.Context(), staff.System(), 1<<40, &text); !errors.Is(err, reminder.ErrNoSlot) {
		t.Errorf("no such slot: %v", err)
	}
	if err := m.Boards.Receipt(t.Context(), 1<<40, &text); !errors.Is(err, reminder.ErrNoSlot) {
		t.Errorf("no such slot: %v", err)
	}
	if text.Len() != 0 {
		t.Errorf("wrote %q before refusing", text.String())
	}
	head, err := receipts.Head(t.Context(), staff.System(), sl.ID)
	if err != nil || head.TemplateID != tpl.ID || head.ShopNumber != 10 || head.Slot.Slot != 1 {
		t.Errorf("%+v %v", head, err)
	}
	if err := receipts.Write(t.Context(), staff.System(), sl.ID, broken{}); !errors.Is(err, errBroken) {
		t.Errorf("a client that went away: %v", err)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }
