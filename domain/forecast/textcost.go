package forecast

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/message"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// A TextReader is one user who has reserved reminders by SMS.
type TextReader struct {
	// Phone is empty if no text message may be sent to the user.
	Phone, Name, Locale, Timezone string
	// Verified says that the number is verified.
	Verified bool
	// Messages is the number of the user's reminders by SMS that are still to be sent.
	Messages int64
}

// A TextDay is a day (UTC) with text messages about a drop that are still to come.
type TextDay struct {
	Day time.Time
	// Messages is the number of the drop's messages, All the number of messages of all drops.
	Messages, All int64
}

// A TextSample is the data from which the cost of a drop's reminders by SMS is estimated.
type TextSample struct {
	Days []TextDay
	// Readers is a sample of the users who have reserved, spread evenly over all of them.
	Readers []TextReader
	// Today is the present day by the database's clock, and SpentToday what was spent on it.
	// SpentDrop is the number of parts spent about the drop.
	Today      time.Time
	SpentToday delivery.BudgetSize
	SpentDrop  int64
}

// TextCostStore reads samples.
type TextCostStore interface {
	// TextSample reads about readers users at most, and at most 25 reservations for each of them,
	// so that its cost does not depend on the number of reservations. If few of many reservations
	// are by SMS, the sample may have no readers.
	TextSample(ctx context.Context, templateID int64, readers int) (TextSample, error)
}

// TextCosts estimates the cost of a drop's reminders by SMS before the drop.
type TextCosts struct {
	Store TextCostStore
	Texts message.Source
	// Prices come before the price of the shop, which is the same for all numbers.
	Prices delivery.SMSPrices
	// PerDay, PerDrop and MicrosPerDay are the budgets; 0 = none.
	PerDay, PerDrop, MicrosPerDay int64
	// VerifiedOnly says that text messages are sent to verified numbers only.
	VerifiedOnly bool
	// Countries are the countries to whose numbers messages are sent, by ISO 3166 codes; none =
	// all.
	Countries []string
	// Country returns the ISO 3166 code of a number; empty = unknown.
	Country func(phone string) string
}

// A CountryCost is the part of one country in a [TextCost].
type CountryCost struct {
	Country         string // ISO 3166; empty = unknown
	Messages, Parts int64
	Micros          int64
	// Priced is false if the price of any of its numbers is not known; Micros is of the others.
	Priced bool
}

// A TextCost is the cost of a drop's reminders by SMS that are still to be sent.
type TextCost struct {
	Messages, Parts int64
	// Micros is in millionths of a unit of Currency; empty = no price is known.
	Micros   int64
	Currency string
	// Countries are in descending order of their parts.
	Countries []CountryCost
	// Estimated says that only the messages of a sample of users were measured.
	Estimated bool
	// DropParts is the number of needed parts if it exceeds DropLeft, the parts left in the
	// drop's budget; otherwise both are 0.
	DropParts, DropLeft int64
	// Days are the days whose budget is too small.
	Days []ShortDay
}

// A ShortDay is a day (UTC) whose text messages need more than its budget has left.
type ShortDay struct {
	Day time.Time
	// Need is the need of all drops, if messages of other drops are like this drop's.
	Need, Left delivery.BudgetSize
	// Parts and Money say which budget is short.
	Parts, Money bool
}

// Priced reports whether the price of every part is known.
func (c TextCost) Priced() bool {
	return c.Currency != "" && !slices.ContainsFunc(c.Countries, func(o CountryCost) bool { return !o.Priced })
}

const (
	// textReaders is the number of users whose messages are measured.
	textReaders = 2000
	// textSlot is the reminder that is measured: ten minutes before.
	textSlot = 2
)

// Of returns the cost of the drop's reminders by SMS that are still to be sent; nil if there are
// none.
func (s *TextCosts) Of(ctx context.Context, t template.Template) (*TextCost, error) {
	sample, err := s.Store.TextSample(ctx, t.ID, textReaders)
	if err != nil || len(sample.Days) == 0 || len(sample.Readers) == 0 {
		return nil, err
	}
	book, err := s.Texts.Book(ctx, message.Place{Shop: t.ShopNumber, Template: t.ID}, message.Newest)
	if err != nil {
		return nil, err
	}
	c, measured := s.measure(t, book, sample.Readers)
	var booked int64
	for _, d := range sample.Days {
		booked += d.Messages
	}
	c.Estimated = measured.Messages != booked
	for i := range c.Countries {
		o := &c.Countries[i]
		for _, n := range []*int64{&o.Messages, &o.Parts, &o.Micros} {
			*n = scaled(*n, booked, measured.Messages)
		}
		c.Messages, c.Parts, c.Micros = c.Messages+o.Messages, c.Parts+o.Parts, c.Micros+o.Micros
	}
	s.judge(c, measured, sample)
	return c, nil
}

// scaled returns n × to ÷ from, rounded up.
func scaled(n, to, from int64) int64 {
	if n == 0 || from == 0 {
		return 0
	}
	return int64(float64(n)*float64(to)/float64(from) + 0.999)
}

// measure sums up the messages of the readers by country. The returned sum includes messages to
// readers who are not sent to, which cost nothing. For a number without a price the sum uses the
// price that the budget uses.
func (s *TextCosts) measure(t template.Template, book *message.Book, readers []TextReader) (*TextCost, CountryCost) {
	subject := delivery.Subject{Kind: delivery.KindReminder, TemplateID: t.ID, TemplateName: t.Name, Description: t.Description, ShopName: t.ShopName, Worth: t.Worth(),
		Slot: textSlot, OpensAt: t.OpensAt, ClaimURL: t.ClaimAddress()}
	render := delivery.NewRenderer(book, subject, delivery.SMS)
	c := &TextCost{Currency: s.Prices.Currency}
	price := s.Prices.Of
	if shop := book.Settings(); s.Prices.Empty() && shop.PartPrice > 0 {
		c.Currency = shop.Currency
		price = func(string) (int64, bool) { return shop.PartPrice * 100, true } // of ten-thousandths
	}
	all := CountryCost{}
	of := map[string]*CountryCost{}
	for _, r := range readers {
		all.Messages += r.Messages
		if r.Phone == "" || s.VerifiedOnly && !r.Verified {
			continue
		}
		name := s.Country(r.Phone)
		if len(s.Countries) > 0 && !slices.Contains(s.Countries, name) {
			continue
		}
		o := of[name]
		if o == nil {
			o = &CountryCost{Country: name, Priced: true}
			of[name] = o
		}
		content := render.For(user.User{Phone: r.Phone, Name: r.Name, Locale: r.Locale, Timezone: r.Timezone})
		parts := r.Messages * int64(max(1, message.SizeOf(content.Text).Parts))
		each, known := price(r.Phone)
		o.Messages, o.Parts, o.Micros, o.Priced = o.Messages+r.Messages, o.Parts+parts, o.Micros+parts*each, o.Priced && known
		if !known {
			each = s.Prices.AtMost(r.Phone)
		}
		all.Parts, all.Micros = all.Parts+parts, all.Micros+parts*each
	}
	for _, o := range slices.SortedFunc(maps.Values(of), func(a, b *CountryCost) int {
		return cmp.Or(cmp.Compare(b.Parts, a.Parts), cmp.Compare(a.Country, b.Country))
	}) {
		c.Countries = append(c.Countries, *o)
	}
	return c, all
}

// judge compares the needed parts and money with the remaining budgets. It assumes that messages
// of other drops on the same day are like this drop's.
func (s *TextCosts) judge(c *TextCost, measured CountryCost, sample TextSample) {
	if left := max(0, s.PerDrop-sample.SpentDrop); s.PerDrop > 0 && c.Parts > left {
		c.DropParts, c.DropLeft = c.Parts, left
	}
	for _, d := range sample.Days {
		short := ShortDay{Day: d.Day, Left: delivery.BudgetSize{Parts: s.PerDay, Micros: s.MicrosPerDay},
			Need: delivery.BudgetSize{Parts: scaled(measured.Parts, d.All, measured.Messages), Micros: scaled(measured.Micros, d.All, measured.Messages)}}
		if d.Day.Equal(sample.Today) {
			short.Left.Parts, short.Left.Micros = max(0, s.PerDay-sample.SpentToday.Parts), max(0, s.MicrosPerDay-sample.SpentToday.Micros)
		}
		short.Parts = s.PerDay > 0 && short.Need.Parts > short.Left.Parts
		short.Money = s.MicrosPerDay > 0 && short.Need.Micros > short.Left.Micros
		if short.Parts || short.Money {
			c.Days = append(c.Days, short)
		}
	}
}
