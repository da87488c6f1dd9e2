package drops

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/forecast"
	"dropbell/domain/template"
	"dropbell/views/ui"
)

// Halted says for each channel why it sends no messages now: "paused" or "failing"; "" = it sends.
// A forecast assumes that every channel sends.
type Halted [delivery.Channels]string

// HaltedOf derives Halted from the states of the channels.
func HaltedOf(channels [delivery.Channels]delivery.ChannelStatus) (h Halted) {
	for i, s := range channels {
		switch {
		case s.Paused:
			h[i] = "paused"
		case s.Open(), s.Unanswered():
			h[i] = "failing"
		}
	}
	return h
}

// An outlook is the forecast for one channel and one template, or for all templates.
type outlook struct {
	channel  delivery.Channel
	rate     forecast.Rate
	jobs     []forecast.Prognosis
	messages int64
	missed   int64
	halted   string // see [Halted]
	// worst is the job that misses the most recipients; if no job misses any, the job with the
	// least time to spare.
	worst forecast.Prognosis
}

// outlooks leaves out channels on which nothing is due; template 0 is all.
func outlooks(f []forecast.ChannelForecast, templateID int64, halted Halted) []outlook {
	var list []outlook
	for _, c := range f {
		o := outlook{channel: c.Channel, rate: c.Rate, halted: halted[c.Channel]}
		for _, p := range c.Jobs {
			if templateID != 0 && p.TemplateID != templateID {
				continue
			}
			if len(o.jobs) == 0 || worse(p, o.worst) {
				o.worst = p
			}
			o.jobs = append(o.jobs, p)
			o.messages, o.missed = o.messages+p.Messages, o.missed+p.Missed
		}
		if len(o.jobs) > 0 {
			list = append(list, o)
		}
	}
	return list
}

func worse(a, b forecast.Prognosis) bool {
	if a.Missed != b.Missed {
		return a.Missed > b.Missed
	}
	return spare(a) < spare(b)
}

// spare is how long before its deadline a job is through.
func spare(p forecast.Prognosis) time.Duration { return p.Deadline.Sub(p.FinishAt) }

// overrun returns how long a job would run beyond its deadline if it was not stopped, as far as
// that is known.
func overrun(p forecast.Prognosis) time.Duration {
	if p.Missed == 0 || p.Rate.PerSecond <= 0 || p.ByPlan {
		return 0
	}
	return max(p.Over, time.Duration(min(float64(p.Missed)/p.Rate.PerSecond, 1e8)*float64(time.Second)))
}

// takes returns the time from the due instant of a job, or from now if that is past, until each
// recipient would have been reached.
func takes(p forecast.Prognosis, now time.Time) time.Duration {
	from := p.DueAt
	if from.Before(now) {
		from = now
	}
	return max(0, p.FinishAt.Sub(from)) + overrun(p)
}

// duration writes d; a duration below a second is written as taking no time.
func duration(ctx context.Context, d time.Duration) string {
	if d < time.Second {
		return ui.T(ctx, "forecast.instantly")
	}
	return ui.From(ctx).Locale.Duration(d)
}

// takesText writes how long a job takes. If a daily limit of mails delays the remaining mails, it
// says so instead.
func takesText(ctx context.Context, p forecast.Prognosis) string {
	if p.ByPlan {
		return ui.T(ctx, "forecast.by_plan")
	}
	return duration(ctx, takes(p, ui.From(ctx).Now))
}

// takes says on a card how long the worst job takes.
func (o outlook) takes(ctx context.Context) string {
	if o.worst.ByPlan {
		return takesText(ctx, o.worst)
	}
	return ui.T(ctx, "forecast.card_takes", takesText(ctx, o.worst))
}

// warning describes the problem in one line: "4 min 10 s, 12 % would miss the opening".
func (o outlook) warning(ctx context.Context) string {
	l := ui.From(ctx).Locale
	return l.T("forecast.warning", l.T("channel."+o.channel.String()), takesText(ctx, o.worst),
		l.Percent(o.worst.Missed, o.worst.Messages))
}

func (o outlook) note(ctx context.Context) string {
	if o.missed > 0 {
		return ui.N(ctx, "forecast.missed", o.missed)
	}
	text := ui.T(ctx, "forecast.spare", ui.From(ctx).Locale.Duration(spare(o.worst)))
	if o.halted != "" {
		return ui.T(ctx, "forecast.if_"+o.halted, text)
	}
	return text
}

func total(list []outlook) (messages, missed int64) {
	for _, o := range list {
		messages, missed = messages+o.messages, missed+o.missed
	}
	return messages, missed
}

// rateText writes a rate with as many digits as mean something.
func rateText(ctx context.Context, perSecond float64) string {
	if perSecond < 10 && perSecond != math.Trunc(perSecond) {
		return strconv.FormatFloat(perSecond, 'f', 1, 64)
	}
	return ui.Num(ctx, int64(math.Round(perSecond)))
}

// sureText describes the reliability of a measured rate; "" if nothing was measured.
func sureText(ctx context.Context, t forecast.Throughput) string {
	switch {
	case t.Slots == 0:
		return ""
	case !t.Sure():
		return ui.N(ctx, "forecast.unsure", int64(t.Slots))
	}
	return ui.T(ctx, "forecast.sure", rateText(ctx, t.Low), rateText(ctx, t.High), t.Slots)
}

// errorText writes the error of forecasts.
func errorText(ctx context.Context, part float64) string {
	const whole = 10_000
	if 0 < part && part < 0.001 {
		return ui.T(ctx, "forecast.error_tiny", ui.From(ctx).Locale.Percent(whole/1000, whole))
	}
	return ui.From(ctx).Locale.Percent(int64(math.Round(part*whole)), whole)
}

func accuracyText(ctx context.Context, a forecast.Accuracy) string {
	return ui.N(ctx, "forecast.accuracy", int64(a.Drops), errorText(ctx, a.Median))
}

// roundUp keeps two digits, so that a rate named as enough is enough.
func roundUp(perSecond float64) float64 {
	unit := 1.0
	for perSecond/unit >= 100 {
		unit *= 10
	}
	return math.Ceil(perSecond/unit) * unit
}

// fixes returns the changes with which each recipient would be reached in time, the simplest first.
// It returns none if a limit of mails causes some misses: a higher rate of the channel would not be
// enough.
func (p Forecast) fixes(ctx context.Context, f forecast.ChannelForecast) []string {
	if f.Missed == 0 || f.Needed <= f.Rate.PerSecond || f.Rate.PerSecond <= 0 || limitMisses(f.Limits) {
		return nil
	}
	l := ui.From(ctx).Locale
	list := []string{l.T("forecast.fix.rate."+string(f.Rate.Source), rateText(ctx, roundUp(f.Needed)))}
	// At a rate r times as high, r times as many get through.
	if share := math.Ceil((1 - f.Rate.PerSecond/f.Needed) * 100); share < 100 {
		list = append(list, l.T("forecast.fix.move", l.Percent(int64(share), 100)))
	}
	if name, later := p.delay(f, ui.From(ctx).Now); later > 0 {
		list = append(list, l.T("forecast.fix.later", name, l.Duration(later)))
	}
	return list
}

const (
	delayStep = 5 * time.Minute
	maxDelay  = 2 * time.Hour
)

// delay returns the shortest delay, of the opening of the drop with the most misses, with which the
// channel would miss no reminder. Reminders move along with their opening, so a delay helps where
// drops compete for the channel. name is "" if no such delay is found.
func (p Forecast) delay(f forecast.ChannelForecast, now time.Time) (name string, later time.Duration) {
	jobs := make([]forecast.Job, len(f.Jobs))
	missed := map[int64]int64{}
	for i, j := range f.Jobs {
		jobs[i] = j.Job
		missed[j.TemplateID] += j.Missed
	}
	worst := slices.MaxFunc(jobs, func(a, b forecast.Job) int { return cmp.Compare(missed[a.TemplateID], missed[b.TemplateID]) })
	if p.Hidden[worst.TemplateID] {
		return "", 0
	}
	for later = delayStep; later <= maxDelay; later += delayStep {
		if missedWhen(jobs, worst.TemplateID, later, f.Rate, now) == 0 {
			return worst.Name, later
		}
	}
	return "", 0
}

// missedWhen counts the reminders that would be missed if the template opened later. Reminders that
// are already due are sent at their old time.
func missedWhen(jobs []forecast.Job, templateID int64, later time.Duration, rate forecast.Rate, now time.Time) (n int64) {
	moved := slices.Clone(jobs)
	for i := range moved {
		if moved[i].TemplateID == templateID && moved[i].DueAt.After(now) {
			moved[i].DueAt, moved[i].Deadline = moved[i].DueAt.Add(later), moved[i].Deadline.Add(later)
		}
	}
	for _, p := range forecast.Forecast(moved, rate, now) {
		n += p.Missed
	}
	return n
}

// A forecastDrop is the part of one template in a channel's forecast.
type forecastDrop struct {
	outlook
	templateID int64
	name       string
	deadline   time.Time
}

// drops divides a channel's jobs by template, in the order of their openings.
func (p Forecast) drops(f forecast.ChannelForecast) []forecastDrop {
	var list []forecastDrop
	for _, j := range f.Jobs {
		if slices.ContainsFunc(list, func(d forecastDrop) bool { return d.templateID == j.TemplateID && d.deadline.Equal(j.Deadline) }) {
			continue
		}
		same := f
		same.Jobs = slices.DeleteFunc(slices.Clone(f.Jobs), func(o forecast.Prognosis) bool {
			return o.TemplateID != j.TemplateID || !o.Deadline.Equal(j.Deadline)
		})
		d := forecastDrop{outlooks([]forecast.ChannelForecast{same}, 0, p.Halted)[0], j.TemplateID, j.Name, j.Deadline}
		if p.Hidden[j.TemplateID] {
			d.name = "" // not even where only screen readers see it
		}
		list = append(list, d)
	}
	slices.SortStableFunc(list, func(a, b forecastDrop) int { return a.deadline.Compare(b.deadline) })
	return list
}

// title is the drop's name as far as the viewer may know it.
func (d forecastDrop) title(ctx context.Context) string {
	if d.name == "" {
		return ui.T(ctx, "forecast.other_shop")
	}
	return d.name
}

func (p Forecast) verdictTone() ui.Tone {
	for _, c := range p.Channels {
		if c.Missed > 0 {
			return ui.Bad
		}
	}
	if len(p.halted()) > 0 {
		return ui.Warn
	}
	return ui.Good
}

// halted returns the channels that have due messages and send none.
func (p Forecast) halted() (list []delivery.Channel) {
	for _, o := range outlooks(p.Channels, 0, p.Halted) {
		if o.halted != "" {
			list = append(list, o.channel)
		}
	}
	return list
}

// quiet lists the channels on which nothing is due.
func (p Forecast) quiet(ctx context.Context) []string {
	var list []string
	for _, c := range p.Channels {
		if len(c.Jobs) == 0 {
			list = append(list, ui.T(ctx, "channel."+c.Channel.String()))
		}
	}
	return list
}

func (p Forecast) headline(ctx context.Context, messages, missed int64) string {
	if missed > 0 {
		return ui.N(ctx, "forecast.bad", missed, messages)
	}
	if list := p.halted(); len(list) > 0 {
		names := make([]string, len(list))
		for i, ch := range list {
			names[i] = ch.String()
		}
		return ui.N(ctx, "forecast.good_if", messages, channelsText(ctx, names))
	}
	return ui.N(ctx, "forecast.good", messages)
}

// jobZone is the zone of the drop's shop, as on its own page.
func jobZone(ctx context.Context, j forecast.Job) *time.Location {
	if j.ShopTimezone == "" {
		return ui.From(ctx).DayZone()
	}
	return template.Template{ShopTimezone: j.ShopTimezone}.Zone()
}

// clockSpan writes the start and the end of sending a job.
func clockSpan(ctx context.Context, p forecast.Prognosis) string {
	l, zone := ui.From(ctx).Locale, jobZone(ctx, p.Job)
	from, to := l.Clock(p.StartAt.Truncate(time.Second), zone), l.Clock(p.FinishAt.Truncate(time.Second), zone)
	if from == to {
		return from
	}
	return from + " – " + to
}
