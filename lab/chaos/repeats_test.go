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

// connections is how many connections to its provider a worker has at most: those of
// the mail sender, and of the webhook as many calls as a batch makes in parallel times
// the batches that a worker has in hand. A kill -9 repeats one mail or one call for
// each of them.
var connections = map[delivery.Channel]int{delivery.Email: 8, delivery.Webhook: 10 * 4}

// perBatch is how many of them one batch uses.
var perBatch = map[delivery.Channel]int{delivery.Email: 4, delivery.Webhook: 10}

// recordedWithin is how soon after the provider's answer to a call its
// messages are recorded as sent, on a busy machine.
const recordedWithin = 5 * time.Second

// deliveredAround is how near to the opening a message may arrive whose
// sender had to give up before it knew.
const deliveredAround = time.Second

// A recipient is one user and channel of a sending.
type recipient struct {
	channel delivery.Channel
	user    int64
}

// expected returns the recipients whom the drop's reminders may reach, by idempotency
// key.
func (w *system) expected(d *drop) map[string]recipient {
	keys := map[string]recipient{}
	for s := range w.crowd.ledger.fates {
		if s.drop == d.id {
			keys[keyOf(d, s.user, s.channel)] = recipient{s.channel, s.user}
		}
	}
	return keys
}

// seen returns what arrived under the keys, in order of arrival.
func (w *system) seen(expected map[string]recipient) map[recipient][]arrival {
	found := map[recipient][]arrival{}
	for _, a := range w.sink.all() {
		s, ok := expected[a.key]
		switch {
		case !ok: // of another sending; print checks that every arrival was of one
		case s != recipient{a.channel, a.user}:
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

// compare checks the sink against the record: each recipient recorded as sent
// was reached, no other was, and none after the end.
func (w *system) compare(s sending, c delivery.Channel, l line, seen map[recipient][]arrival) {
	var wrong complaints
	defer func() { wrong.report(w.t, s, c) }()
	for it := l.sent.Iterator(); it.HasNext(); {
		if u := int64(it.Next()); len(seen[recipient{c, u}]) == 0 {
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

// A batchRun is one worker process working on one batch.
type batchRun struct {
	worker string
	batch  int64
}

// calls are the calls of a provider, or the mails, that were repeated because one
// worker was cut off.
type calls map[string]bool

// repetitions checks that each repeated message has a reason: the provider
// concealed that it had accepted the message, or the worker was killed (or
// halted) before it could record it. The latter are at most one mail, or one
// call, for each connection of the worker.
func (w *system) repetitions(of sending, seen map[recipient][]arrival) {
	lines := map[delivery.Channel]line{}
	for c := range connections {
		lines[c] = w.read(of, c)
	}
	var wrong [delivery.Channels]complaints
	repeated := map[delivery.Channel]map[batchRun]calls{delivery.Email: {}, delivery.Webhook: {}}
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
			h := batchRun{who, lines[s.channel].batch[s.user]}
			if repeated[s.channel][h] == nil {
				repeated[s.channel][h] = calls{}
			}
			repeated[s.channel][h][a.call] = true
		}
	}
	for c := range wrong {
		wrong[c].report(w.t, of, delivery.Channel(c))
	}
	w.bounded(of, repeated)
}

// cutOff names the process because of which a message was repeated, or says
// why there was no reason to repeat it.
func (w *system) cutOff(first, again arrival) (who, why string) {
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
	if first.answer == answered && unrecorded > recordedWithin {
		return first.worker, fmt.Sprintf("although %v passed until it was killed", unrecorded)
	}
	return first.worker, ""
}

// bounded checks that no more was repeated than one mail, or one call, for each
// connection: of one batch, and of all that a worker had in hand when it was cut off.
func (w *system) bounded(of sending, repeated map[delivery.Channel]map[batchRun]calls) {
	if w.report.repeated == nil {
		w.report.repeated = map[batchRun]int{}
	}
	for c, hands := range repeated {
		for h, list := range hands {
			worker := batchRun{h.worker, int64(c)}
			w.report.repeated[worker] += len(list)
			n, most := w.report.repeated[worker], w.mostRepeated(h.worker, connections[c])
			w.report.largest[c] = max(w.report.largest[c], n)
			if ofBatch := w.mostRepeated(h.worker, perBatch[c]); len(list) > ofBatch || n > most {
				w.t.Errorf("%s, %s: %s was cut off and %d calls of batch %d were repeated, %d of all; it has %d connections for a batch and %d for all",
					of.what, c, h.worker, len(list), h.batch, n, ofBatch, most)
			}
		}
	}
}

// mostRepeated is what may be repeated because of one worker with that many
// connections. One that was halted until others had its batches goes on with the call
// it was in, and those that waited for its connections begin one before they notice;
// it may have been killed as well.
func (w *system) mostRepeated(worker string, connections int) int {
	_, killed := w.fleet.killedAt(worker)
	halted := w.fleet.wasHalted(worker)
	switch {
	case halted && killed:
		return 3 * connections
	case halted:
		return 2 * connections
	}
	return connections
}

const clock = "15:04:05.000"

// A report is what a run adds up to.
type report struct {
	reminders, sent, recovered, expired int64
	missed, after                       int64
	arrivals, concealed, cutOff         int64
	repeated                            map[batchRun]int       // calls because of one worker; the batch is its channel
	largest                             [delivery.Channels]int // calls repeated because of one worker
	lines                               int
	takeover                            time.Duration
	twice                               atomic.Int64
}

// print checks what concerns the run as a whole and says what it was.
func (w *system) print() {
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
		"  repeated: in flight at a kill or halt", r.cutOff, "    most mails at one of them", r.largest[delivery.Email],
		"    most webhook calls at one of them", r.largest[delivery.Webhook], "  after the opening", r.after,
		"balance sheet lines, all with difference 0", r.lines, "take-over of a killed worker's batch", r.takeover.Round(100*time.Millisecond)))
}

// happened checks that everything that was to be destroyed was.
func (w *system) happened() {
	for name, d := range map[string]*faultDeck{"webhook": w.sink.hooks, "mail": w.sink.mails} {
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
