package delivery

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/template"
	"dropbell/domain/user"
	deliverypages "dropbell/views/pages/delivery"
	"dropbell/web/console/shell"
)

// deliveryQuery reads the filter of batches, and returns the fields that cannot be read.
func (h *handlers) deliveryQuery(r *http.Request) (deliverypages.DeliveryFilter, delivery.BatchQuery, []fault.Field) {
	typed := func(name string) string { return strings.TrimSpace(r.FormValue(name)) }
	f := deliverypages.DeliveryFilter{Kind: typed("kind"), Slot: typed("slot"), Channel: typed("channel"), State: typed("state"), Outcome: typed("outcome"),
		Template: typed("template"), User: typed("user"), From: typed("from"), To: typed("to")}
	q, broken := delivery.BatchQuery{Limit: shell.PageSize}, &fault.Fields{}
	q.Kind, q.State = shell.Choice(r, "kind", delivery.Kinds(), broken), shell.Choice(r, "state", delivery.BatchStates(), broken)
	q.Outcome = shell.Choice(r, "outcome", delivery.ListedOutcomes(), broken)
	q.Slot, _ = strconv.Atoi(shell.Choice(r, "slot", slotNames(), broken))
	if name := shell.Choice(r, "channel", channelNames(), broken); name != "" {
		if ch, err := delivery.ParseChannel(name); err == nil {
			q.Channel = &ch
		}
	}
	q.TemplateID = h.Named(r, shell.Drops, "template", f.Template, broken)
	q.UserID = h.NamedUser(r, f.User, broken)
	q.From, q.To = h.typedMoment("from", f.From, broken), h.typedMoment("to", f.To, broken)
	return f, q, broken.List
}

// channelNames are the channels' values in addresses.
func channelNames() (list []string) {
	for _, c := range delivery.AllChannels() {
		list = append(list, c.String())
	}
	return list
}

// slotNames are the slots' values in addresses.
func slotNames() (list []string) {
	for _, s := range template.AllSlots() {
		list = append(list, strconv.Itoa(int(s)))
	}
	return list
}

// typedMoment reads a local time in the console's zone. If the local time occurs twice, the first
// instant is used: a filter may show an hour too much.
func (h *handlers) typedMoment(name, text string, broken *fault.Fields) *time.Time {
	if text == "" {
		return nil
	}
	if d := shell.Day(text, h.DefaultZone); d != nil {
		return d
	}
	at, rule := shell.Instant(text, shell.FirstTime, h.DefaultZone)
	if rule != "" || at.Year() < 1970 || at.Year() > 9000 {
		broken.Add(name, "rule.time_format", "is not a date and time")
		return nil
	}
	return &at
}

// A list of fewer than fewRows rows reads further pages of batches, up to pagesAtMost pages.
const fewRows, pagesAtMost = 5, 8

func (h *handlers) listDeliveries(w http.ResponseWriter, r *http.Request) error {
	f, q, broken := h.deliveryQuery(r)
	p := deliverypages.Deliveries{Filter: f}
	if p.Errors = broken; len(broken) == 0 {
		keys := shell.JoinedKeys(batchKeys, len(h.cells))
		list, next, err := h.batches(r, q, keys.In(r), shell.Across)
		p.List = list
		// Batches of one message are one row: a page of few rows has further batches.
		for n := 1; err == nil && n < pagesAtMost && next != "" && q.UserID == 0 && p.Rows() < fewRows; n++ {
			list, next, err = h.batches(r, q, next, shell.Across)
			p.List = append(p.List, list...)
		}
		if err != nil {
			return err
		}
		p.Paged = keys.Paged(r, len(p.List), next != "", next)
		p.Export = shell.ExportURL(r)
	}
	return h.Listed(w, r, p.Results(), p.Page())
}

// batchKeys are the keys of batches of one database.
var batchKeys = shell.Places("_")

// batches returns up to q.Limit batches of all databases after the place, latest due first, and the next
// place, "" at the end. Batches of a database stand behind no place that another database has not looked
// at yet: a search for one user looks at a bounded number of batches. across is [shell.Across] or
// [shell.AcrossAll].
func (h *handlers) batches(r *http.Request, q delivery.BatchQuery, place string, across func(*shell.Shell, *http.Request, []int, func(int, *http.Request) (delivery.BatchPage, error)) ([]*delivery.BatchPage, error)) (list []delivery.BatchRow, next string, _ error) {
	at := shell.SplitKeys(place, len(h.cells))
	got, err := across(h.Shell, r, shell.Numbers(len(h.cells)), func(n int, r *http.Request) (delivery.BatchPage, error) {
		q, after := q, batchKeys.Parse(at[n])
		q.After = delivery.BatchCursor{DueAt: after.At, ID: after.ID}
		return h.cells[n].Ledger.Batches(r.Context(), shell.Actor(r), q)
	})
	if err != nil {
		return nil, "", err
	}
	before := func(a, b delivery.BatchCursor) int { return cmp.Or(b.DueAt.Compare(a.DueAt), cmp.Compare(b.ID, a.ID)) }
	placeOf := func(b delivery.BatchRow) delivery.BatchCursor { return delivery.BatchCursor{DueAt: b.DueAt, ID: b.ID} }
	var end *delivery.BatchCursor
	for _, page := range got {
		if page == nil {
			continue
		}
		if list = append(list, page.List...); page.More && (end == nil || before(page.Next, *end) < 0) {
			end = &page.Next
		}
	}
	slices.SortStableFunc(list, func(a, b delivery.BatchRow) int { return before(placeOf(a), placeOf(b)) })
	list = slices.CompactFunc(list, func(a, b delivery.BatchRow) bool { return a.ID == b.ID }) // while its shop moves
	if end != nil {
		list = slices.DeleteFunc(list, func(b delivery.BatchRow) bool { return before(placeOf(b), *end) > 0 })
	}
	if len(list) > q.Limit {
		last := placeOf(list[q.Limit-1])
		list, end = list[:q.Limit], &last
	}
	if end == nil {
		return list, "", nil
	}
	for n, page := range got {
		if page != nil { // a database that is silent begins where it was
			at[n] = batchKeys.Text(shell.Place{At: end.DueAt, ID: end.ID})
		}
	}
	return list, shell.JoinKeys(at), nil
}

func (h *handlers) exportDeliveries(w http.ResponseWriter, r *http.Request) error {
	_, q, broken := h.deliveryQuery(r)
	if len(broken) > 0 {
		return &fault.Fields{List: broken}
	}
	head := []string{"batch_id", "kind", "owner_id", "template_id", "template_name", "shop_number", "slot_minutes", "channel", "state", "stop_reason",
		"from_user", "to_user", "recipients", "sent", "skipped", "expired", "dead", "in_flight", "due_at", "started_at", "finished_at", "user_outcome",
		"delivered", "bounced", "complained", "providers", "control_group"}
	q.Limit = shell.ExportPage
	return shell.FileOf("deliveries", head, func(b delivery.BatchRow) []any {
		return []any{b.ID, string(b.Kind), b.OwnerID, b.TemplateID, b.TemplateName, b.ShopNumber, b.Slot * template.SlotMinutes, b.Channel.String(), string(b.State), b.StopReason,
			int64(b.From), int64(b.To), b.Counts.Reserved, b.Counts.Sent, b.Counts.Skipped, b.Counts.Expired, b.Counts.Dead, b.Counts.InFlight,
			b.DueAt, b.StartedAt, b.FinishedAt, string(b.Outcome), b.Reported.Delivered, b.Reported.Bounced, b.Reported.Complained, sharesText(b.Providers), b.Counts.HeldOut}
	}).Send(h.Shell, w, r, func(write func(delivery.BatchRow) error) error {
		for next := ""; ; {
			list, further, err := h.batches(r, q, next, shell.AcrossAll)
			if err == nil {
				err = shell.Each(list)(write)
			}
			if next = further; err != nil || next == "" {
				return err
			}
		}
	})
}

// recipientQuery reads the filter of recipients of the batch in the address.
func (h *handlers) recipientQuery(r *http.Request) (p deliverypages.Batch, q delivery.RecipientQuery, err error) {
	if q.BatchID, err = shell.PathID(r); err != nil {
		return p, q, err
	}
	broken := &fault.Fields{}
	p.User, p.Outcome = strings.TrimSpace(r.FormValue("user")), strings.TrimSpace(r.FormValue("outcome"))
	q.Only, q.Outcome = h.NamedUser(r, p.User, broken), shell.Choice(r, "outcome", delivery.ListedOutcomes(), broken)
	p.Errors = broken.List
	return p, q, nil
}

func (h *handlers) showBatch(w http.ResponseWriter, r *http.Request) error {
	p, q, err := h.recipientQuery(r)
	if err != nil {
		return err
	}
	if p.Row, err = h.Ledger.Batch(r.Context(), shell.Actor(r), q.BatchID); err != nil {
		return err
	}
	p.List, p.Paged, err = shell.List[delivery.Recipient, user.ID]{Keys: shell.UserIDs(), Broken: p.Errors, Read: func(after user.ID, limit int) ([]delivery.Recipient, error) {
		q.After, q.Limit = after, limit
		return h.Ledger.Recipients(r.Context(), shell.Actor(r), q)
	}, KeyOf: func(x delivery.Recipient) user.ID { return x.UserID }}.Page(r)
	if err != nil {
		return err
	}
	shell.NameEach(h.Shell, r, p.List, func(x delivery.Recipient) user.ID { return x.UserID })
	path, query, _ := strings.Cut(shell.ExportURL(r), "?")
	p.Export = strings.TrimSuffix(path, ".csv") + "/recipients.csv?" + query
	return h.Listed(w, r, p.Results(), p.Page())
}

func (h *handlers) exportRecipients(w http.ResponseWriter, r *http.Request) error {
	p, q, err := h.recipientQuery(r)
	if err == nil && len(p.Errors) > 0 {
		err = &fault.Fields{List: p.Errors}
	}
	if err != nil {
		return err
	}
	list, err := h.Ledger.Recipients(r.Context(), shell.Actor(r), q) // a batch has about a thousand
	if err != nil {
		return err
	}
	head := []string{"user_id", "outcome", "reason", "detail", "attempts", "recorded_at", "next_retry_at", "reported", "cause", "provider"}
	return shell.FileOf(fmt.Sprintf("recipients-%d", q.BatchID), head, func(x delivery.Recipient) []any {
		return []any{int64(x.UserID), string(x.Outcome), x.Reason, x.Detail, x.Attempts, x.At, x.NextRetryAt, string(x.Reported), x.Cause, x.Provider}
	}).Send(h.Shell, w, r, shell.Each(list))
}

// sharesText lists how many messages of a batch each provider took, as in "Main 600, Second 400".
func sharesText(shares []delivery.ProviderShare) string {
	texts := make([]string, len(shares))
	for i, s := range shares {
		texts[i] = fmt.Sprintf("%s %d", s.Name, s.Sent)
	}
	return strings.Join(texts, ", ")
}
