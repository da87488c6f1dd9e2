package draw

import (
	"bytes"
	"strings"
)

// rowOf returns the row of a ticket: of the list, or without it of the inclusion.
func (v *verification) rowOf(t Ticket) (Row, bool) {
	if v.light {
		if v.own != nil && v.own.Ticket() == t {
			return *v.own, true
		}
		return Row{}, false
	}
	at, found := Find(v.rows, t)
	if !found {
		return Row{}, false
	}
	return v.rows[at], true
}

// receipt checks that the entry of a receipt is in the list as it was made, and says whether it won.
func (v *verification) receipt(signed string) {
	r, err := OpenReceipt(v.key, signed)
	if err != nil {
		v.bad("The receipt: %v.", err)
		return
	}
	if r.Drop != v.card.Drop {
		v.bad("The receipt belongs to drop %d.", r.Drop)
		return
	}
	if r.EnteredAt.Before(v.card.OpensAt) || r.EnteredAt.After(v.card.ClosesAt) {
		v.bad("The entry of the receipt was made at %s, outside the time on the card.", stamp(r.EnteredAt))
		return
	}
	if v.seal.Entries == 0 {
		v.good("The receipt is signed. There is no list yet in which its ticket could be.")
		return
	}
	row, found := v.rowOf(r.Entry.Ticket)
	if !found && v.light {
		if !v.Sound() {
			return
		}
		v.bad("There is no path that proves that the ticket %v of the receipt is in the list. Check the draw with its list.", r.Entry.Ticket)
		return
	}
	if !found {
		v.bad("The ticket %v of the receipt is not in the list. The entry was left, was struck before the seal, or was dropped: only the first is your own doing.", r.Entry.Ticket)
		return
	}
	if row != r.Entry.Row() {
		v.bad("The ticket %v of the receipt has the weight %d there and %d in the list, or another user.", r.Entry.Ticket, r.Entry.Weight, row.Weight())
		return
	}
	v.good("The ticket %v of the receipt is in the list, with its weight %d and for its user.", r.Entry.Ticket, r.Entry.Weight)
	if !v.decided || !v.Sound() {
		return
	}
	score := Score(v.result.Seed, r.Entry.Ticket, r.Entry.Weight)
	for _, s := range v.result.Struck {
		if s.Ticket == r.Entry.Ticket {
			v.good("The ticket was struck after the seal: %s.", s.Reason)
			return
		}
	}
	if bytes.Compare(score[:], v.result.Cutoff[:]) <= 0 {
		v.good("Its score %v is not above the cutoff: it won.", score)
		return
	}
	v.good("Its score %v is above the cutoff: it did not win.", score)
}

// TicketOf returns the ticket that a signed receipt names, without checking the signature; "" if it names none.
func TicketOf(receipt string) string {
	for line := range strings.SplitSeq(receipt, "\n") {
		if ticket, is := strings.CutPrefix(line, "ticket "); is {
			if _, err := ParseTicket(ticket); err == nil {
				return ticket
			}
		}
	}
	return ""
}
