package messages_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/lookup"
	messagesdb "dropbell/adapters/postgres/messages"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/message"
	"dropbell/domain/staff"
)

func reminderSMS(tag string) message.Key {
	return message.Key{Kind: message.Reminder, Channel: message.SMS, Language: tag}
}

func say(body string) *message.Text { return &message.Text{Body: body} }

// Every save is a version, and the newest version is used. A version of a drop has precedence
// over the shop's version. An older version can be restored.
func TestVersions(t *testing.T) {
	w := pgtest.New(t)
	tpl := w.Published(2 * time.Hour)
	s, by := &message.Service{Store: messagesdb.NewMessages(w.DB)}, staff.System()
	shop, drop := message.Place{Shop: tpl.ShopNumber}, message.Place{Shop: tpl.ShopNumber, Template: tpl.ID}
	found := func() string {
		b, err := s.Book(t.Context(), by, drop)
		w.Must(err)
		f, ok := b.Own(reminderSMS("de"))
		return fmt.Sprintf("%s %s %v", f.Level, f.Text.Body, ok)
	}
	save := func(p message.Place, text *message.Text, basedOn int64) message.Version {
		v, err := s.Save(t.Context(), by, p, reminderSMS("de"), text, basedOn)
		w.Must(err)
		return v
	}
	first := save(shop, say("shop {{drop}}"), 0)
	own := save(drop, say("drop {{drop}}"), 0)
	if got := found(); got != "drop drop {{drop}} true" {
		t.Errorf("the drop's text: %s", got)
	}
	if again := save(drop, say("drop {{drop}}"), 0); again.ID != own.ID { // the form was sent twice
		t.Errorf("the same text became version %d after %d", again.ID, own.ID)
	}
	if _, err := s.Save(t.Context(), by, drop, reminderSMS("de"), say("other"), 0); !errors.Is(err, fault.ErrStale) {
		t.Errorf("a text that was changed meanwhile: %v", err)
	}
	gone := save(drop, nil, own.ID)
	if got := found(); got != "shop shop {{drop}} true" {
		t.Errorf("without the drop's text: %s", got)
	}
	back, err := s.Restore(t.Context(), by, drop, own.ID, gone.ID)
	w.Must(err)
	if got := found(); got != "drop drop {{drop}} true" || back.RestoredFrom != own.ID {
		t.Errorf("restored: %s, %+v", got, back)
	}
	if _, err := s.Restore(t.Context(), by, drop, first.ID, back.ID); !errors.Is(err, message.ErrNotFound) {
		t.Errorf("a version of another place: %v", err)
	}
	history, err := s.History(t.Context(), by, drop, reminderSMS("de"), 10)
	if w.Must(err); len(history) != 3 || history[0].ID != back.ID || history[1].Text != nil {
		t.Errorf("history: %+v", history)
	}
	if _, err := s.Save(t.Context(), by, message.Place{Shop: tpl.ShopNumber, Template: tpl.ID + 1}, reminderSMS("de"), say("x"), 0); !errors.Is(err, message.ErrNotFound) {
		t.Errorf("a drop that does not exist: %v", err)
	}
	if _, err := s.Save(t.Context(), staff.Actor{}, drop, reminderSMS("de"), say("x"), back.ID); err == nil {
		t.Error("saved without a right to")
	}
	if n := w.Number(`select count(*) from audit where action like 'message.%'`); n != 4 {
		t.Errorf("%d audit entries, want 4", n)
	}
}

// Several texts are saved together, all or none; a save that is repeated stores nothing more.
func TestTextsAreSavedTogether(t *testing.T) {
	w := pgtest.New(t)
	tpl := w.Published(2 * time.Hour)
	s := &message.Service{Store: messagesdb.NewMessages(w.DB)}
	place := message.Place{Shop: tpl.ShopNumber, Template: tpl.ID}
	sms, name := message.Change{Key: reminderSMS("de"), Text: say("Gleich")}, message.Change{Key: message.Key{Kind: message.Names, Language: "de"}, Text: &message.Text{Title: "Tee"}}
	for range 2 {
		if list, err := s.SaveAll(t.Context(), staff.System(), place, []message.Change{sms, name}); err != nil || len(list) != 2 {
			t.Fatalf("%d saved, %v", len(list), err)
		}
	}
	if n := w.Number(`select count(*) from message_versions`) + w.Number(`select count(*) from audit where action = 'message.save'`); n != 4 {
		t.Errorf("%d versions and entries, want two of each", n)
	}
	other, stale := message.Change{Key: reminderSMS("fr"), Text: say("Salut")}, message.Change{Key: reminderSMS("de"), Text: say("Anders")}
	if _, err := s.SaveAll(t.Context(), staff.System(), place, []message.Change{other, stale}); !errors.Is(err, fault.ErrStale) {
		t.Errorf("a text that was changed meanwhile: %v", err)
	}
	if _, err := s.SaveAll(t.Context(), staff.System(), place, []message.Change{other, {Key: reminderSMS("es"), Text: say("{{nope}}")}}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a text with a mistake: %v", err)
	}
	if _, err := s.SaveAll(t.Context(), staff.Actor{}, place, []message.Change{other}); err == nil {
		t.Error("saved without a right to")
	}
	if list, err := s.SaveAll(t.Context(), staff.System(), place, nil); len(list) != 0 || err != nil {
		t.Errorf("nothing to save: %v, %v", list, err)
	}
	if n := w.Number(`select count(*) from message_versions`); n != 2 {
		t.Errorf("%d versions after refusals", n)
	}
}

// If members save concurrently, one save succeeds. Ids become visible in their order.
func TestSavesAtOnce(t *testing.T) {
	w := pgtest.New(t)
	tpl := w.Published(2 * time.Hour)
	s := &message.Service{Store: messagesdb.NewMessages(w.DB)}
	var all sync.WaitGroup
	won := make(chan int64, 8)
	for i := range 8 {
		all.Go(func() {
			v, err := s.Save(t.Context(), staff.System(), message.Place{Shop: tpl.ShopNumber}, reminderSMS("de"), say(fmt.Sprint("text ", i)), 0)
			if err == nil {
				won <- v.ID
			} else if !errors.Is(err, fault.ErrStale) {
				t.Errorf("save %d: %v", i, err)
			}
		})
	}
	all.Wait()
	if len(won) != 1 || w.Number(`select count(*) from message_versions`) != 1 {
		t.Errorf("%d saves won", len(won))
	}
}

// A text that is saved between two attempts of a batch changes nothing for the batch's
// recipients: both attempts use the text from the cut of the batch. Batches that are cut later
// use the new text.
func TestABatchKeepsItsTexts(t *testing.T) {
	n := pgtest.NewNotifier(t)
	texts, err := lookup.NewBooks(messagesdb.NewMessages(n.DB))
	n.Must(err)
	s := &message.Service{Store: messagesdb.NewMessages(n.DB)}
	key := message.Key{Kind: message.Reminder, Channel: message.Webhook, Language: "en"}
	tpl := n.Published(2 * time.Hour)
	save := func(body string, basedOn int64) int64 {
		v, err := s.Save(t.Context(), staff.System(), message.Place{Shop: tpl.ShopNumber, Template: tpl.ID}, key, &message.Text{Title: "T", Body: body}, basedOn)
		n.Must(err)
		return v.ID
	}
	first := save("first for {{user|you}}", 0)
	n.Exec(`insert into users (id, name) values (1, 'Ann'), (2, '') on conflict (id) do update set name = excluded.name`)
	n.ReserveAll(tpl, pgtest.Users(1, 2), pgtest.Reminders(delivery.Webhook, 60, 5)...)
	n.CutSlot(tpl, 12, 1000)
	n.Exec(`update templates set description = E'Tea\nand cake'`)
	second := save("second: {{description}}", first)
	n.CutSlot(tpl, 1, 1000)
	said := map[string]int{}
	provider := pgtest.NewSink(delivery.Webhook, 10)
	provider.Answer = func(m delivery.Message, times int) delivery.Result {
		said[fmt.Sprint(m.Subject.Slot, " ", m.Content.Text)]++
		if times == 1 {
			return delivery.Result{Detail: "502"}
		}
		return delivery.Result{Status: delivery.Delivered}
	}
	service := n.Deliverer(&pgtest.MemoryQueue{}, provider)
	service.Texts = texts
	for range 2 {
		n.Must(service.Drain(t.Context(), delivery.Webhook))
		n.Exec(`update batches set next_run_at = now()`)
		n.Exec(`update exceptions set next_retry_at = now()`)
	}
	for text, want := range map[string]int{"12 first for Ann": 2, "12 first for you": 2, "1 second: Tea and cake": 4} {
		if said[text] != want {
			t.Errorf("%q was said %d times, want %d: %v", text, said[text], want, said)
		}
	}
	if book, err := texts.Book(t.Context(), message.Place{Shop: tpl.ShopNumber, Template: tpl.ID}, 0); err != nil || book.Find(message.Reminder, message.Webhook, "en").Level != message.BuiltIn {
		t.Errorf("version 0 holds more than built-in texts: %v", err)
	}
	if second <= first {
		t.Errorf("versions %d and %d", first, second)
	}
}

// The claim address of the shop leads where the drop names none, in the inbox too.
func TestClaimAddressOfTheShop(t *testing.T) {
	n := pgtest.NewNotifier(t)
	tpl := n.Published(2 * time.Hour)
	n.Exec(`update shops set claim_url = 'https://shop.example/drops/{id}'`)
	n.Exec(`update templates set claim_url = ''`)
	n.ReserveAll(tpl, pgtest.Users(1, 1), pgtest.Reminders(delivery.App, 60)...)
	n.Remind(tpl, 12)
	page, err := n.Inbox.Page(t.Context(), 1, time.Time{}, 10)
	n.Must(err)
	if want := fmt.Sprint("https://shop.example/drops/", tpl.ID); len(page.Items) != 1 || page.Items[0].ClaimURL != want || !strings.Contains(page.Items[0].Title, tpl.Name) || page.Items[0].Text == "" {
		t.Errorf("the inbox says %+v, want the address %s", page.Items, want)
	}
}

func TestLooksAndOwnUser(t *testing.T) {
	w := pgtest.New(t)
	s := messagesdb.NewMessages(w.DB)
	for range 2 {
		w.Must(s.Look(t.Context(), 7, "staff:1"))
	}
	if looked, err := s.Looked(t.Context(), 7); err != nil || !looked {
		t.Errorf("looked: %v %v", looked, err)
	}
	if looked, err := s.Looked(t.Context(), 8); err != nil || looked {
		t.Errorf("never looked: %v %v", looked, err)
	}
	w.Exec(`insert into users (id, email, phone) values (5, 'Ada@shop.example', '+8613800138000')`)
	if u, ok, err := s.OwnUser(t.Context(), "ada@SHOP.example"); err != nil || !ok || u.ID != 5 || u.Phone == "" {
		t.Errorf("own user: %+v %v %v", u, ok, err)
	}
	if _, ok, err := s.OwnUser(t.Context(), ""); err != nil || ok {
		t.Errorf("the user without an address: %v %v", ok, err)
	}
}
