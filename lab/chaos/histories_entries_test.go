package chaos_test

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"dropbell/adapters/beacon"
	"dropbell/domain/draw"
)

// entrants is how many users of a draw have a history together.
const entrants = 6

// An entryStep is a request about the entry of one user of a draw, or the close of the draw, whose answer is the sealed list.
type entryStep struct {
	verb string // enter, leave, read, close
	user int
}

// found is the answer to a request to enter of a user who has an entry.
const found = "found"

// unknownTicket is the ticket of an entry whose request got no answer, until another answer tells it.
const unknownTicket = 1

// entriesState is the state of the entries of a draw.
type entriesState struct {
	closed  bool
	tickets [entrants]uint64 // 0 = no entry
}

// entryModel is the entries of a draw: one for each user, which keeps its ticket until the user leaves. At one instant entries are
// closed for all users, and the sealed list has the entries of that instant.
func entryModel() porcupine.NondeterministicModel {
	return porcupine.NondeterministicModel{
		Init:              func() []any { return []any{entriesState{}} },
		Step:              func(s, in, out any) []any { return s.(entriesState).step(in.(entryStep), out.(reported)) },
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v → %+v", in, out) },
		DescribeState:     func(s any) string { return fmt.Sprintf("%+v", s) },
	}
}

func (s entriesState) step(in entryStep, told reported) []any {
	mine, next := s.tickets[in.user], s
	possible := !s.closed && (mine == 0) == (in.verb == "enter") // to enter, or to leave
	switch {
	case in.verb == "close":
		next.closed = true
		if told.code == "" {
			return either(told, s, next)
		}
		return when(!s.closed && s.isList(told.list), next)
	case told.code == "" && (in.verb == "read" || !possible):
		return []any{s}
	case told.code == "":
		if next.tickets[in.user] = 0; in.verb == "enter" {
			next.tickets[in.user] = unknownTicket
		}
		return either(told, s, next)
	case told.code == "entries_closed":
		return when(s.closed && (mine == 0) == (in.verb == "enter"), s)
	case told.code == "not_entered":
		return when(mine == 0 && in.verb != "enter", s)
	case in.verb == "leave":
		next.tickets[in.user] = 0
		return when(told.code == okay && possible, next)
	case in.verb == "enter" && told.code == okay:
		next.tickets[in.user] = told.value
		return when(possible, next)
	}
	next.tickets[in.user] = told.value
	return when(mine == told.value || mine == unknownTicket, next)
}

// isList reports whether the tickets are those of the entries.
func (s entriesState) isList(list []uint64) bool {
	entries := 0
	for _, ticket := range s.tickets {
		if ticket > unknownTicket && !slices.Contains(list, ticket) {
			return false
		}
		if ticket != 0 {
			entries++
		}
	}
	return entries == len(list)
}

// A drawHistory is a draw whose entries are recorded.
type drawHistory struct {
	*histories
	history  *history
	template int64
	mu       sync.Mutex
	receipts map[uint64]string // by ticket
	seal     string            // as it was first seen
}

func (h *histories) openDraw(n int) func() {
	d := &drawHistory{histories: h, receipts: map[uint64]string{}, history: h.record(fmt.Sprint("entries ", n), entryModel())}
	d.template = h.publishDrop("History of entries", "durable", "claim", 2, 1, time.Hour, map[string]any{"opening_mode": "draw", "draw_source": "commit"})
	h.awaitCard(d.template)
	return d.run
}

// run lets two clients of every user enter, leave and read, while staff move the opening, at which entries are closed and sealed.
func (d *drawHistory) run() {
	closes := time.Now().Add(d.rush.storm * 6 / 10).Truncate(time.Second).UTC()
	var all sync.WaitGroup
	all.Go(func() {
		(&sale{claims: d.claims, mode: "draw", template: d.template}).edit(func(now map[string]any) map[string]any {
			if now["opens_at"] == closes.Format(time.RFC3339) {
				return nil
			}
			return map[string]any{"opens_at": closes}
		})
		wait(time.Until(closes.Add(-100*time.Millisecond)), d.ctx.Done())
		d.history.do(2*entrants, entryStep{verb: "close"}, 0, d.sealed)
	})
	for client := range 2 * entrants {
		all.Go(func() {
			rng := d.random(uint64(400_00 + client))
			for range 8 {
				wait(time.Duration(rng.Int64N(int64(d.rush.storm/5))), d.ctx.Done())
				d.act(client, client%entrants, rng)
			}
		})
	}
	all.Wait()
	for user := range entrants { // what the storm left is what everybody sees afterwards
		d.history.do(user, entryStep{"read", user}, 0, func() reported { return d.ask(http.MethodGet, user) })
	}
	d.verify()
}

func (d *drawHistory) act(client, user int, rng *rand.Rand) {
	verb, method := "enter", http.MethodPut
	switch rng.IntN(6) {
	case 0, 1:
		verb, method = "leave", http.MethodDelete
	case 2:
		verb, method = "read", http.MethodGet
	}
	d.history.do(client, entryStep{verb, user}, 0, func() reported { return d.ask(method, user) })
}

// ask sends one request about the entry of a user, and keeps the receipt.
func (d *drawHistory) ask(method string, user int) reported {
	r, final := d.answer(call{method: method, path: fmt.Sprintf("/draws/%d/entry", d.template), user: entrantOf(d.template, user)})
	switch {
	case !final:
		return reported{}
	case !r.ok():
		return reported{code: r.code}
	case r.status == http.StatusNoContent:
		return reported{code: okay}
	}
	var entry struct{ Ticket, Receipt string }
	raw, err := []byte(nil), json.Unmarshal(r.body, &entry)
	if err == nil {
		raw, err = hex.DecodeString(entry.Ticket)
	}
	if err != nil || len(raw) != 16 {
		d.t.Errorf("an entry has the ticket %q: %v", entry.Ticket, err)
		return reported{}
	}
	told := reported{code: okay, value: binary.BigEndian.Uint64(raw)}
	if method == http.MethodPut && r.status == http.StatusOK {
		told.code = found
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if before := d.receipts[told.value]; before != "" && before != entry.Receipt {
		d.t.Errorf("one ticket has two receipts:\n%s\n%s", before, entry.Receipt)
	}
	d.receipts[told.value] = entry.Receipt
	return told
}

// entrantOf is the id of a user of a history.
func entrantOf(template int64, user int) int64 { return 70_000_000 + 100*template + int64(user) }

// sealed waits for the seal and returns the tickets of the sealed list.
func (d *drawHistory) sealed() reported {
	for end := time.Now().Add(time.Minute); ; wait(50*time.Millisecond, d.ctx.Done()) {
		if p, rows := d.published(d.template); p.Seal != "" {
			if d.seal == "" {
				d.seal = p.Seal
			}
			told := reported{code: okay}
			for i := range rows {
				ticket := rows[i].Ticket()
				told.list = append(told.list, binary.BigEndian.Uint64(ticket[:8]))
			}
			return told
		}
		if time.Now().After(end) {
			d.t.Errorf("the draw of drop %d is not sealed after a minute", d.template)
			return reported{}
		}
	}
}

// verify recomputes the draw with the receipt of every ticket of the list.
func (d *drawHistory) verify() {
	var list []string
	for _, ticket := range d.sealed().list {
		if receipt := d.receipts[ticket]; receipt != "" {
			list = append(list, receipt)
		}
	}
	d.verifyDraw(d.template, d.seal, list)
}

// published returns what everybody can read about a draw.
func (w *system) published(template int64) (p draw.Published, rows []draw.Row) {
	path := fmt.Sprintf("/draws/%d", template)
	proof, final := w.crowd.send(w.ctx, call{method: http.MethodGet, path: path + "/proof"})
	if !final || !proof.ok() || json.Unmarshal(proof.body, &p) != nil {
		w.t.Errorf("the proof of drop %d: %d %s", template, proof.status, proof.body)
		return p, nil
	}
	list, final := w.crowd.send(w.ctx, call{method: http.MethodGet, path: path + "/list"})
	rows, err := draw.Rows(list.body)
	if !final || !list.ok() || err != nil {
		w.t.Errorf("the list of drop %d: %d %v", template, list.status, err)
	}
	return p, rows
}

// verifyDraw waits until the draw was made and recomputes it as a stranger would who kept a seal and each of the receipts.
func (w *system) verifyDraw(template int64, seal string, receipts []string) {
	w.t.Helper()
	p, rows := w.published(template)
	for end := time.Now().Add(time.Minute); p.Result == "" && time.Now().Before(end); wait(100*time.Millisecond, w.ctx.Done()) {
		p, rows = w.published(template)
	}
	if p.Result == "" {
		w.t.Errorf("the draw of drop %d is not made after a minute", template)
	}
	for _, receipt := range append(receipts, "") {
		if r := draw.Verify(p, rows, draw.Kept{Seal: seal, Receipt: receipt}, beacon.Judge{}); !r.Sound() {
			w.t.Errorf("the draw of drop %d does not verify: %+v", template, r)
		}
	}
}
