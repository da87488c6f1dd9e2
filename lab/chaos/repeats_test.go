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

// connections is the greatest number of connections of a worker to its provider. For mail it is
// the mail sender's number. For webhooks it is the number of parallel calls of a batch times the
// number of batches that a worker processes at the same time. A kill -9 repeats one mail or one
// call per connection.
var connections = map[delivery.Channel]int{delivery.Email: 8, delivery.Webhook: 10 * 4}

// perBatch is the number of [connections] that one batch uses.
var perBatch = map[delivery.Channel]int{delivery.Email: 4, delivery.Webhook: 10}

// recordedWithin is how soon after the provider's answer to a call the call's messages are
// recorded as sent, on a busy machine.
const recordedWithin = 5 * time.Second

// deliveredAround is how near to the opening a message may arrive although its sender had to
// give up before it got the answer.
const deliveredAround = time.Second

// A recipient is one user and channel of a sending.
type recipient struct {
	channel delivery.Channel
	user    int64
}

// expected returns the recipients that the drop's reminders may reach, by idempotency key.
func (w *system) expected(d *drop) map[string]recipient {
	keys := map[string]recipient{}
	for s := range w.crowd.ledger.fates {
		if s.drop == d.id {
			keys[keyOf(d, s.user, s.channel)] = recipient{s.channel, s.user}
		}
	}
	return keys
}

// seen returns the messages that arrived under the keys, in order of arrival.
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

// compare checks the sink against the record: each recipient that is recorded as sent was
// reached, no other user was reached, and no message arrived after the end.
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
		// The sender of the message could not know or record the outcome: its call was cut off
		// while the sink took the message, the worker was killed, or the worker was halted until
		// other workers had its batch.
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

// calls are the calls of a provider, or the mails, that were repeated because one worker was cut
// off.
type calls map[string]bool

// repetitions checks that each repeated message has a reason. Either the provider concealed that
// it had accepted the message, or the worker was killed or halted before it could record the
// message. For the second reason, at most one mail or call is repeated per connection of the
// worker.
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

// cutOff names the process that caused the repetition of a message. why is empty, or says why
// there was no reason to repeat the message.
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

// bounded checks that at most one mail, or one call, was repeated per connection: for one batch,
// and for all batches that a worker was processing when it was cut off.
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

// mostRepeated is the greatest number of repetitions that one worker with that many connections
// may cause. A worker that was halted until other workers had its batches first continues its
// current call on each connection. Calls that waited for these connections then begin one call
// each before they notice the loss. A halted worker may have been killed as well.
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

// A report has the sums of a run.
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

// print checks the sums of the whole run and prints them.
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
