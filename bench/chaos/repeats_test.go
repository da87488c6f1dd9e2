package chaos_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dropbell/domain/delivery"
)

// inFlight is how many messages of one batch a worker may have with its
// provider at once: calls in parallel times messages in a call, as the worker
// has them.
var inFlight = map[delivery.Channel]int{delivery.Email: 4 * 50, delivery.Webhook: 10 * 100}

// recordedWithin is how soon after the provider's answer to a call its
// messages are recorded as sent, on a busy machine.
const recordedWithin = 5 * time.Second

// deliveredAround is how near to the opening a message may arrive whose
// sender had to give up before it knew.
const deliveredAround = time.Second

// A spot is one user and channel of a sending.
type spot struct {
	channel delivery.Channel
	user    int64
}

// expected returns whom the drop's reminders may reach, by idempotency key.
func (w *world) expected(d *drop) map[string]spot {
	keys := map[string]spot{}
	for s := range w.crowd.ledger.fates {
		if s.drop == d.id {
			keys[keyOf(d, s.user, s.channel)] = spot{s.channel, s.user}
		}
	}
	return keys
}

// seen returns what arrived under the keys, in order of arrival.
func (w *world) seen(expected map[string]spot) map[spot][]arrival {
	found := map[spot][]arrival{}
	for _, a := range w.sink.all() {
		s, ok := expected[a.key]
		switch {
		case !ok: // of another sending; print checks that every arrival was of one
		case s != spot{a.channel, a.user}:
			w.t.Errorf("user %d got %s under the key of user %d", a.user, a.channel, s.user)
		default:
			found[s] = append(found[s], a)
			w.report.arrivals++
		}
	}
	for _, list := range found {
		slices.SortFunc(list, func(a, b arrival) int { return a.at.Compare(b.at) })
	}
	return found
}

// complaints of one kind may be thousands; the first few tell enough.
type complaints struct {
	number int
	first  []string
}

func (c *complaints) add(format string, args ...any) {
	if c.number++; c.number <= 3 {
		c.first = append(c.first, fmt.Sprintf(format, args...))
	}
}

func (c *complaints) report(t *testing.T, s sending, channel delivery.Channel) {
	t.Helper()
	if c.number > 0 {
		t.Errorf("%s, %s: %d complaints, the first are:\n%s", s.what, channel, c.number, strings.Join(c.first, "\n"))
	}
}

// compare checks the sink against the record: everybody recorded as sent was
// reached, nobody else was, and nobody after the end.
func (w *world) compare(s sending, c delivery.Channel, l line, seen map[spot][]arrival) {
	var wrong complaints
	defer func() { wrong.report(w.t, s, c) }()
	for it := l.sent.Iterator(); it.HasNext(); {
		if u := int64(it.Next()); len(seen[spot{c, u}]) == 0 {
			wrong.add("user %d is recorded as sent and was not reached", u)
		}
	}
	for to, list := range seen {
		if to.channel != c {
			continue
		}
		last := list[len(list)-1]
		if !last.at.Before(s.until) {
			w.report.after++
			wrong.add("user %d was reached %v after the end", to.user, last.at.Sub(s.until))
		}
		// Its sender could not know, or could no longer say: it was cut off
		// while the sink took it, killed, or halted until others had its batch.
		_, killed := w.fleet.killedAt(last.worker)
		crossed := last.answer != answered || killed || w.fleet.wasHalted(last.worker) || s.until.Sub(last.ended) < deliveredAround
		if !l.sent.Contains(uint64(to.user)) && !crossed {
			wrong.add("user %d was reached and is recorded as %q", to.user, l.cause[to.user]+l.other[to.user])
		}
	}
}

// A hand is one worker process working on one batch.
type hand struct {
	worker string
	batch  int64
}

// repetitions checks that whoever was reached more than once has a reason: the
// provider concealed that it had taken the message, or the worker was killed
// (or halted) before it could record it. The latter are at most the calls that
// one worker had in flight.
func (w *world) repetitions(of sending, seen map[spot][]arrival) {
	lines := map[delivery.Channel]line{}
	for c := range inFlight {
		lines[c] = w.read(of, c)
	}
	var wrong [delivery.Channels]complaints
	repeated := map[delivery.Channel]map[hand]int{delivery.Email: {}, delivery.Webhook: {}}
	for s, list := range seen {
		for i, a := range list[:len(list)-1] {
			if a.answer == concealed {
				w.report.concealed++
				continue
			}
			who, why := w.cutOff(a, list[i+1])
			if why != "" {
				wrong[s.channel].add("user %d was reached twice, %s: by %s at %s and by %s at %s", s.user, why,
					a.worker, a.at.Format(clock), list[i+1].worker, list[i+1].at.Format(clock))
			}
			w.report.cutOff++
			repeated[s.channel][hand{who, lines[s.channel].batch[s.user]}]++
		}
	}
	for c := range wrong {
		wrong[c].report(w.t, of, delivery.Channel(c))
	}
	w.bounded(of, repeated)
}

// cutOff names the process because of which a message was repeated, or says
// why there was no reason to repeat it.
func (w *world) cutOff(first, again arrival) (who, why string) {
	killedAt, killed := w.fleet.killedAt(first.worker)
	switch {
	case w.fleet.wasHalted(first.worker):
		return first.worker, ""
	case w.fleet.wasHalted(again.worker): // it finished its call when it went on
		return again.worker, ""
	case !killed:
		return first.worker, "without a cause"
	case first.worker == again.worker:
		return first.worker, "although it was not yet killed"
	}
	unrecorded := killedAt.Sub(first.ended) - w.away(first.ended, killedAt)
	// A mail waits for the others of its call; there only the number is bounded.
	if first.channel == delivery.Webhook && first.answer == answered && unrecorded > recordedWithin {
		return first.worker, fmt.Sprintf("although %v passed until it was killed", unrecorded)
	}
	return first.worker, ""
}

// bounded checks that no more was repeated than one worker had in flight.
func (w *world) bounded(of sending, repeated map[delivery.Channel]map[hand]int) {
	for c, hands := range repeated {
		for h, n := range hands {
			w.report.largest = max(w.report.largest, n)
			most := inFlight[c]
			if _, killed := w.fleet.killedAt(h.worker); killed && w.fleet.wasHalted(h.worker) {
				most *= 2
			}
			if n > most {
				w.t.Errorf("%s, %s: %s was cut off and %d messages of batch %d were repeated; at most %d were in flight",
					of.what, c, h.worker, n, h.batch, most)
			}
		}
	}
}

const clock = "15:04:05.000"

// A report is what a run adds up to.
type report struct {
	reminders, sent, recovered, expired int64
	missed, after                       int64
	arrivals, concealed, cutOff         int64
	largest                             int // messages repeated because of one kill, in one batch
	lines                               int
	takeover                            time.Duration
	twice                               atomic.Int64
}

// print checks what concerns the run as a whole and says what it was.
func (w *world) print() {
	r := &w.report
	all := w.sink.all()
	if int64(len(all)) != r.arrivals {
		w.t.Errorf("%d messages arrived that belong to no drop", int64(len(all))-r.arrivals)
	}
	w.happened()
	l := w.crowd.ledger
	w.say("seed %d\n%s", w.seed, table(
		"reminders accounted for", r.reminders, "  sent", r.sent, "    of them after a retry", r.recovered, "  expired, with their cause", r.expired,
		"acknowledged", l.count(accepted), "refused at the due instant", l.count(refused), "cancelled", l.count(withdrawn),
		"without an answer", l.count(unknown), "missed", r.missed, "requests repeated by clients", w.crowd.repeats.Load(),
		"kill -9 of workers", w.fleet.kills("worker"), "kill -9 of web", w.fleet.kills("web"),
		"batches queued twice", r.twice.Load(), "messages turned away by providers", w.sink.refused.Load(),
		"messages at the sinks", r.arrivals, "  repeated: provider concealed its yes", r.concealed,
		"  repeated: in flight at a kill or halt", r.cutOff, "    most of one batch at one of them", r.largest, "  after the opening", r.after,
		"balance sheet lines, all with difference 0", r.lines, "take-over of a killed worker's batch", r.takeover.Round(100*time.Millisecond)))
}

// happened checks that whatever was to be destroyed was.
func (w *world) happened() {
	for name, d := range map[string]*deck{"webhook": w.sink.hooks, "mail": w.sink.mails} {
		if left := d.left(); len(left) > 0 {
			w.t.Errorf("the %s provider never did: %v", name, left)
		}
	}
	if webs, workers := w.fleet.kills("web"), w.fleet.kills("worker"); webs < w.webKills || workers < w.workerKills {
		w.t.Errorf("only %d web and %d worker processes were killed", webs, workers)
	}
	if w.report.twice.Load() == 0 {
		w.t.Error("no batch was given to two workers")
	}
}

func table(cells ...any) (text string) {
	for i := 0; i < len(cells); i += 2 {
		text += fmt.Sprintf("        %-44s %8v\n", cells[i], cells[i+1])
	}
	return text
}
