package console

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/user"
	"dropbell/views/pages"
)

// deliveryQuery reads which batches are meant, and what cannot be read.
func (c *Console) deliveryQuery(r *http.Request) (pages.DeliveryFilter, delivery.BatchQuery, []fault.Field) {
	typed := func(name string) string { return strings.TrimSpace(r.FormValue(name)) }
	f := pages.DeliveryFilter{Kind: typed("kind"), Slot: typed("slot"), Channel: typed("channel"), State: typed("state"), Outcome: typed("outcome"),
		Template: typed("template"), User: typed("user"), From: typed("from"), To: typed("to")}
	q, broken := delivery.BatchQuery{Limit: pageSize}, &fault.Fields{}
	q.Kind, q.State = choice(r, "kind", delivery.Kinds(), broken), choice(r, "state", delivery.BatchStates(), broken)
	q.Outcome = choice(r, "outcome", delivery.ListedOutcomes(), broken)
	q.Slot, _ = strconv.Atoi(choice(r, "slot", slotNames(), broken))
	if name := choice(r, "channel", channelNames(), broken); name != "" {
		if ch, err := delivery.ParseChannel(name); err == nil {
			q.Channel = &ch
		}
	}
	q.TemplateID = typedNumber("template", f.Template, broken)
	q.UserID = typedUser(f.User, broken)
	q.From, q.To = c.typedMoment("from", f.From, broken), c.typedMoment("to", f.To, broken)
	return f, q, broken.List
}

// channelNames are the channels as they stand in addresses.
func channelNames() (list []string) {
	for _, c := range delivery.AllChannels() {
		list = append(list, c.String())
	}
	return list
}

// slotNames are the slots as they stand in addresses.
func slotNames() (list []string) {
	for n := 1; n <= 12; n++ {
		list = append(list, strconv.Itoa(n))
	}
	return list
}

// typedUser reads a user id, which may be left empty.
func typedUser(text string, broken *fault.Fields) user.ID {
	if text == "" {
		return 0
	}
	id, err := user.ParseID(narrow(text))
	if err != nil {
		broken.Add("user", "rule.user_id", "must be a positive whole number")
	}
	return id
}

// typedMoment reads a local time in the console's zone. Where it happens
// twice the first one is meant: a filter may show an hour too much.
func (c *Console) typedMoment(name, text string, broken *fault.Fields) *time.Time {
	if text == "" {
		return nil
	}
	if d := day(text, c.DefaultZone); d != nil {
		return d
	}
	at, rule := instant(text, firstTime, c.DefaultZone)
	if rule != "" || at.Year() < 1970 || at.Year() > 9000 {
		broken.Add(name, "rule.time_format", "is not a date and time")
		return nil
	}
	return &at
}

// batchCursor reads the "after" of a keyset page; nonsense is the beginning.
func batchCursor(s string) delivery.BatchCursor {
	at := cursor(s) // the same form as in the list of templates
	if at.ID <= 0 {
		return delivery.BatchCursor{}
	}
	return delivery.BatchCursor{DueAt: at.OpensAt, ID: at.ID}
}

func (c *Console) listDeliveries(w http.ResponseWriter, r *http.Request) error {
	f, q, broken := c.deliveryQuery(r)
	p := pages.Deliveries{Filter: f, Errors: broken}
	q.After = batchCursor(r.FormValue("after"))
	if len(broken) == 0 {
		page, err := c.Ledger.Batches(r.Context(), actor(r), q)
		if err != nil {
			return err
		}
		p.List, p.Export = page.List, exportURL(r)
		if page.More {
			p.Next = withQuery(r, "after", fmt.Sprintf("%d_%d", page.Next.DueAt.UnixMicro(), page.Next.ID))
			p.Further = len(page.List) < pageSize
		}
	}
	if q.After.ID != 0 {
		p.First = withQuery(r, "after", "")
	}
	return c.listed(w, r, p.Results(), p.Page())
}

func (c *Console) exportDeliveries(w http.ResponseWriter, r *http.Request) error {
	_, q, broken := c.deliveryQuery(r)
	if len(broken) > 0 {
		return &fault.Fields{List: broken}
	}
	head := []string{"batch_id", "kind", "owner_id", "template_id", "template_name", "shop_number", "slot_minutes", "channel", "state", "stop_reason",
		"from_user", "to_user", "recipients", "sent", "skipped", "expired", "dead", "in_flight", "due_at", "started_at", "finished_at", "user_outcome"}
	q.Limit = exportPage
	return c.export(w, r, "deliveries", head, func(t *sheet) error {
		return c.Ledger.EachBatch(r.Context(), actor(r), q, func(b delivery.BatchRow) error {
			return t.row(b.ID, string(b.Kind), b.OwnerID, b.TemplateID, b.TemplateName, b.ShopNumber, b.Slot*5, b.Channel.String(), string(b.State), b.StopReason,
				int64(b.From), int64(b.To), b.Counts.Reserved, b.Counts.Sent, b.Counts.Skipped, b.Counts.Expired, b.Counts.Dead, b.Counts.InFlight,
				b.DueAt, b.StartedAt, b.FinishedAt, string(b.Outcome))
		})
	})
}

// recipientQuery reads which recipients of the batch in the address are meant.
func recipientQuery(r *http.Request) (p pages.Batch, q delivery.RecipientQuery, err error) {
	if q.BatchID, err = pathID(r); err != nil {
		return p, q, err
	}
	broken := &fault.Fields{}
	p.User, p.Outcome = strings.TrimSpace(r.FormValue("user")), strings.TrimSpace(r.FormValue("outcome"))
	q.Only, q.Outcome = typedUser(p.User, broken), choice(r, "outcome", delivery.ListedOutcomes(), broken)
	p.Errors = broken.List
	return p, q, nil
}

func (c *Console) showBatch(w http.ResponseWriter, r *http.Request) error {
	p, q, err := recipientQuery(r)
	if err != nil {
		return err
	}
	if p.Row, err = c.Ledger.Batch(r.Context(), actor(r), q.BatchID); err != nil {
		return err
	}
	q.After, _ = user.ParseID(r.FormValue("after")) // nonsense is the beginning
	q.Limit = pageSize + 1
	if len(p.Errors) == 0 {
		if p.List, err = c.Ledger.Recipients(r.Context(), actor(r), q); err != nil {
			return err
		}
		path, query, _ := strings.Cut(exportURL(r), "?")
		p.Export = strings.TrimSuffix(path, ".csv") + "/recipients.csv?" + query
	}
	if len(p.List) > pageSize {
		p.List = p.List[:pageSize]
		p.Next = withQuery(r, "after", p.List[pageSize-1].UserID.String())
	}
	if q.After != 0 {
		p.First = withQuery(r, "after", "")
	}
	return c.listed(w, r, p.Results(), p.Page())
}

func (c *Console) exportRecipients(w http.ResponseWriter, r *http.Request) error {
	p, q, err := recipientQuery(r)
	if err == nil && len(p.Errors) > 0 {
		err = &fault.Fields{List: p.Errors}
	}
	if err != nil {
		return err
	}
	list, err := c.Ledger.Recipients(r.Context(), actor(r), q) // a batch has about a thousand
	if err != nil {
		return err
	}
	head := []string{"user_id", "outcome", "reason", "detail", "attempts", "recorded_at", "next_retry_at"}
	return c.export(w, r, fmt.Sprintf("recipients-%d", q.BatchID), head, func(t *sheet) error {
		for _, x := range list {
			if err := t.row(int64(x.UserID), string(x.Outcome), x.Reason, x.Detail, x.Attempts, x.At, x.NextRetryAt); err != nil {
				return err
			}
		}
		return nil
	})
}
