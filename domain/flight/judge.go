package flight

import (
	"fmt"
	"math"
	"strings"
	"time"

	"dropbell/domain/budget"
	"dropbell/domain/delivery"
	"dropbell/domain/figure"
	"dropbell/domain/forecast"
	"dropbell/domain/template"
)

const (
	// redMissed is the part of a channel's reminders that may miss the opening before the finding is red.
	redMissed = 0.05
	// leastTold is the part of the reserved reminders that should be sent.
	leastTold = 0.5
	// measureFrom is from how many messages on an assumed rate is worth a finding.
	measureFrom = 200
	// soon is how long before the opening missing reservations and processes are findings.
	soon = time.Hour
)

// judge returns the findings of all points, in their order.
func (f *facts) judge() (list []Finding) {
	for _, point := range []func() []Finding{f.users, f.providers, f.rendered, f.tests, f.answers, f.money, f.around, f.processes} {
		list = append(list, point()...)
	}
	return list
}

func green(p Point, format string, args ...any) Finding {
	return Finding{p, Green, fmt.Sprintf(format, args...), ""}
}

func finding(p Point, l Level, do, format string, args ...any) Finding {
	return Finding{p, l, fmt.Sprintf(format, args...), do}
}

// grouped writes the numbers with commas.
func grouped(numbers ...int64) []any {
	list := make([]any, len(numbers))
	for i, n := range numbers {
		list[i] = figure.Grouped(n)
	}
	return list
}

// channelWords are the channels in sentences.
var channelWords = map[delivery.Channel]string{delivery.App: "the inbox", delivery.Email: "e-mail", delivery.SMS: "SMS", delivery.WebPush: "push", delivery.Webhook: "the shop's server"}

func (f *facts) lanes() (list []Lane) {
	for _, c := range f.forecasts {
		for _, p := range c.Jobs {
			if p.TemplateID != f.t.ID {
				continue
			}
			held := p.Booked * int64(f.t.HoldOutPercent) / 100
			list = append(list, Lane{Slot: p.Slot, Channel: c.Channel, DueAt: p.DueAt, Booked: p.Booked, Messages: p.Messages, HeldOut: held, NoContact: max(0, p.Booked-held-p.Messages),
				Missed: p.Missed, FinishAt: p.FinishAt})
		}
	}
	return list
}

func (f *facts) users() []Finding {
	if f.t.Stored == template.Draft {
		return []Finding{green(Users, "customers can reserve reminders once the drop is published")}
	}
	var booked, told, held, none int64
	for _, l := range f.lanes() {
		booked, told, held, none = booked+l.Booked, told+l.Messages, held+l.HeldOut, none+l.NoContact
	}
	switch {
	case booked == 0 && f.t.OpensAt.Sub(f.now) < soon && f.now.Before(f.t.OpensAt):
		return []Finding{finding(Users, Amber, "tell customers of the drop, for example with a campaign", "no customer waits for a reminder of this drop")}
	case booked == 0:
		return []Finding{green(Users, "no customer has reserved a reminder yet")}
	case float64(told) < leastTold*float64(booked-held):
		return []Finding{finding(Users, Amber, "ask customers for an address, or offer the inbox as a channel", "reserved reminders: %s; skipped without a contact or after an opt-out: %s; held out: %s", grouped(booked, none, held)...)}
	}
	return []Finding{green(Users, "reserved reminders: %s; to be sent: %s; without a contact or opted out: %s; held out: %s", grouped(booked, told, none, held)...)}
}

func (f *facts) providers() (list []Finding) {
	for _, c := range f.forecasts {
		var messages, missed, longest int64
		for _, p := range c.Jobs {
			if p.TemplateID == f.t.ID {
				messages, missed, longest = messages+p.Messages, missed+p.Missed, max(longest, int64(math.Ceil(p.FinishAt.Sub(p.DueAt).Seconds())))
			}
		}
		word, rate := channelWords[c.Channel], int64(math.Round(c.Rate.PerSecond))
		switch {
		case messages == 0:
		case !f.channels.Has(c.Channel):
			list = append(list, finding(Providers, Red, "configure a sender of the channel on the page Channels", "messages by %s: %s, and no provider can send them", word, figure.Grouped(messages)))
		case missed > 0:
			level := Amber
			if float64(missed) > redMissed*float64(messages) {
				level = Red
			}
			list = append(list, finding(Providers, level, fmt.Sprintf("raise the provider's quota or the rate of the channel to %s a second, or add a provider", figure.Grouped(int64(math.Ceil(c.Needed)))),
				"messages by %s: %s, of which %s would miss the opening at %s a second", append([]any{word}, grouped(messages, missed, rate)...)...))
		case c.Rate.Source == forecast.Assumed && c.Channel != delivery.App && messages >= measureFrom:
			list = append(list, finding(Providers, Amber, "send a test over the channel, and start with a small drop", "messages by %s: %s at %s a second, which was never measured", append([]any{word}, grouped(messages, rate)...)...))
		default:
			list = append(list, green(Providers, "messages by %s: %s, the longest wave takes %s s at %s a second", append([]any{word}, grouped(messages, max(0, longest), rate)...)...))
		}
	}
	if len(list) == 0 {
		list = append(list, green(Providers, "no message is due yet"))
	}
	return list
}

func (f *facts) rendered() (list []Finding) {
	languages := map[string]bool{}
	for _, t := range f.texts {
		languages[t.Language] = true
		name := fmt.Sprintf("%s, %s, %s", t.Kind, t.Channel, t.Language)
		switch {
		case t.broken:
			list = append(list, finding(Texts, Red, "correct it on the page of the drop's messages", "a text breaks a rule: %s", name))
		case t.empty:
			list = append(list, finding(Texts, Red, "correct it on the page of the drop's messages", "a text is empty: %s", name))
		case len(t.missing) > 0:
			list = append(list, finding(Texts, Amber, "add it on the page of the drop's messages, or leave it out on purpose", "a text lacks %s: %s", strings.Join(t.missing, ", "), name))
		}
	}
	if len(list) == 0 {
		list = append(list, green(Texts, "texts that were rendered: %d, languages: %d", len(f.texts), len(languages)))
	}
	return list
}

func (f *facts) tests() []Finding {
	switch {
	case f.doors != nil:
		return []Finding{finding(Doors, Red, "correct the doors or the test persons on the page of the doors", "the doors do not treat the test persons as expected")}
	case len(f.t.Doors) == 0:
		return []Finding{green(Doors, "all customers come in at the same time")}
	}
	return []Finding{green(Doors, "doors: %d, and every test person comes through the expected door", len(f.t.Doors))}
}

func (f *facts) answers() (list []Finding) {
	if !f.called {
		return nil
	}
	for _, l := range f.links {
		switch {
		case l.Status >= 400 && l.Status != 401 && l.Status != 403 && l.Status != 429:
			list = append(list, finding(Links, Red, "correct the address in the drop or its texts, or publish the page", "a link answers with HTTP %d: %s", l.Status, l.Address))
		case l.Status == 0:
			list = append(list, finding(Links, Amber, "open the address in a browser: this server may not be allowed to reach it", "a link does not answer: %s", l.Address))
		}
	}
	if len(list) == 0 && len(f.links) == 0 {
		return []Finding{green(Links, "no message leads to a page of another server")}
	}
	if len(list) == 0 {
		list = append(list, green(Links, "links that answer: %d", len(f.links)))
	}
	return list
}

func (f *facts) money() (list []Finding) {
	worth := budget.Worth(f.t.Spec)
	for _, b := range f.budgets {
		owner := map[budget.Scope]string{budget.Drop: "the drop's budget", budget.Shop: "the shop's budget"}[b.Scope]
		switch {
		case f.t.Stored == template.Draft && budget.Room(b.Amount, b.Committed, worth, f.t.Stock, owner) != nil:
			list = append(list, finding(Budget, Red, "lower the stock or raise the budget", "%s does not cover the stock", owner))
		case b.Level() != budget.Fine:
			list = append(list, finding(Budget, Amber, "raise the budget, or expect the drop to end early", "%s is used to %d percent", owner, b.Share()/10))
		default:
			list = append(list, green(Budget, "%s covers the stock", owner))
		}
	}
	if len(list) == 0 {
		list = append(list, green(Budget, "no budget limits the drop"))
	}
	return list
}

func (f *facts) around() []Finding {
	const do = "move one of the openings, or plan processes and quotas for all of them"
	switch {
	case f.others == 0:
		return []Finding{green(Neighbours, "no other drop opens within ten minutes")}
	case f.others == 1 && f.reserved == 0:
		return []Finding{finding(Neighbours, Amber, do, "one other drop opens within ten minutes; no customer has reserved a reminder of it")}
	case f.others == 1:
		return []Finding{finding(Neighbours, Amber, do, "one other drop opens within ten minutes; customers who reserved reminders of it: %s", grouped(f.reserved)...)}
	case f.reserved == 0:
		return []Finding{finding(Neighbours, Amber, do, "%s other drops open within ten minutes; no customer has reserved a reminder of them", grouped(f.others)...)}
	}
	return []Finding{finding(Neighbours, Amber, do, "%s other drops open within ten minutes; customers who reserved reminders of them: %s", grouped(f.others, f.reserved)...)}
}

func (f *facts) processes() []Finding {
	do := fmt.Sprintf("start web processes until %d run before the opening", f.wanted)
	switch {
	case f.wanted <= max(f.web, least):
		return []Finding{green(Capacity, "web processes that run: %d, which suffice", f.web)}
	case f.t.OpensAt.Sub(f.now) < soon:
		return []Finding{finding(Capacity, Red, do, "web processes that run: %d, wanted at the opening: %d", f.web, f.wanted)}
	}
	return []Finding{finding(Capacity, Amber, do, "web processes that run: %d, wanted at the opening: %d", f.web, f.wanted)}
}

// least is how many web processes are wanted without any load.
const least = 2
