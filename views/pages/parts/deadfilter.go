package parts

import (
	"context"
	"net/url"
	"strings"

	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/views/ui"
)

// A DeadFilter selects dead letters; its fields are the parameters of the
// address, and empty fields select everything.
type DeadFilter struct {
	Channel, Template, Campaign, User string
	// Fingerprint selects one kind of error; nil selects all kinds, "" errors without a text.
	Fingerprint *string
}

// Active reports whether the filter selects anything.
func (f DeadFilter) Active() bool {
	return f.Channel != "" || f.Template != "" || f.Campaign != "" || f.User != "" || f.Fingerprint != nil
}

// Pairs are the parts that select something, for addresses and hidden fields.
func (f DeadFilter) Pairs() [][2]string {
	var list [][2]string
	for _, p := range [][2]string{{"channel", f.Channel}, {"template", f.Template}, {"campaign", f.Campaign}, {"user", f.User}} {
		if p[1] != "" {
			list = append(list, p)
		}
	}
	if f.Fingerprint != nil {
		list = append(list, [2]string{"fingerprint", *f.Fingerprint})
	}
	return list
}

// URL is the page at path with the filter, and more parameters if given.
func (f DeadFilter) URL(path string, more ...[2]string) string {
	q := url.Values{}
	for _, p := range append(f.Pairs(), more...) {
		q.Set(p[0], p[1])
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// Group narrows the filter to one group of dead letters.
func (f DeadFilter) Group(g delivery.DeadLetterGroup) DeadFilter {
	f.Channel, f.Fingerprint = g.Channel.String(), &g.Fingerprint
	return f
}

// Words describes the filter as a part of a sentence.
func (f DeadFilter) Words(ctx context.Context) string {
	var list []string
	if f.Channel != "" {
		list = append(list, ui.T(ctx, "channel."+f.Channel))
	}
	if f.Fingerprint != nil {
		answer := AnswerText(ctx, *f.Fingerprint)
		if *f.Fingerprint == "" || answer == ui.Private(ctx, *f.Fingerprint) { // neither translated nor a quotation
			answer = ui.T(ctx, "letters.quoted", answer)
		}
		list = append(list, answer)
	}
	if f.Template != "" {
		list = append(list, ui.T(ctx, "object.template", f.Template))
	}
	if f.Campaign != "" {
		list = append(list, ui.T(ctx, "object.campaign", "#"+f.Campaign))
	}
	if f.User != "" {
		list = append(list, ui.T(ctx, "object.user", f.User))
	}
	if len(list) == 0 {
		return ui.T(ctx, "letters.all")
	}
	return strings.Join(list, ui.T(ctx, "ui.list_join"))
}

// AnswerText shows a provider's answer; some have no words.
func AnswerText(ctx context.Context, answer string) string {
	if answer == "" {
		return ui.T(ctx, "letters.no_answer")
	}
	return ui.Said(ctx, answer)
}

// MayOperate reports whether the viewer may replay and discard dead letters.
func MayOperate(ctx context.Context) bool { return ui.May(ctx, staff.Operate, 0) }
