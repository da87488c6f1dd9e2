package delivery

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/user"
	deliverypages "dropbell/views/pages/delivery"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// recentJobs is how many replays and discards are shown, running or not.
const recentJobs = 5

// maxJobs bounds how far back a job is looked for.
const maxJobs = 100

// typedFilter reads the filter of dead letters. An unreadable filter selects nothing: an action
// must never affect more than the typed filter selects.
func (h *handlers) typedFilter(r *http.Request) (pageparts.DeadFilter, delivery.DeadLetterFilter, []fault.Field) {
	typed := pageparts.DeadFilter{Channel: r.FormValue("channel"), Template: strings.TrimSpace(r.FormValue("template")),
		Campaign: strings.TrimSpace(r.FormValue("campaign")), User: strings.TrimSpace(r.FormValue("user"))}
	if values, ok := r.Form["fingerprint"]; ok {
		typed.Fingerprint = &values[0]
	}
	f := delivery.DeadLetterFilter{Fingerprint: typed.Fingerprint}
	var broken fault.Fields
	if typed.Channel != "" {
		c, err := delivery.ParseChannel(typed.Channel)
		if err != nil {
			broken.Add("channel", "rule.kind", "must be a channel")
		}
		f.Channel = &c
	}
	f.TemplateID = h.Named(r, shell.Drops, "template", typed.Template, &broken)
	f.CampaignID = h.Named(r, shell.Campaigns, "campaign", typed.Campaign, &broken)
	f.UserID = h.NamedUser(r, typed.User, &broken)
	return typed, f, broken.List
}

// refuseFilter redirects from pages that act on the selected dead letters, or list them, to the
// page with the filter, which marks the fields that cannot be read.
func (h *handlers) refuseFilter(w http.ResponseWriter, r *http.Request, typed pageparts.DeadFilter) error {
	return h.Done(w, r, typed.URL("/dead-letters"), "", "")
}

func (h *handlers) listDeadLetters(w http.ResponseWriter, r *http.Request) error {
	typed, f, broken := h.typedFilter(r)
	p := deliverypages.DeadLetters{Filter: typed, Errors: broken}
	if len(broken) == 0 {
		got, err := shell.Across(h.Shell, r, h.cells, func(h *handlers, r *http.Request) ([]delivery.DeadLetterGroup, error) {
			return h.DeadLetters.Groups(r.Context(), shell.Actor(r), f)
		})
		if err != nil {
			return err
		}
		p.Groups = joinGroups(got)
	}
	var err error
	if p.Jobs, err = h.deadLetterJobs(r); err != nil {
		return err
	}
	return h.Either(w, r, p.Results(), p.Page())
}

func (h *handlers) deadLetterJobs(r *http.Request) (deliverypages.Jobs, error) {
	got, err := shell.Across(h.Shell, r, h.cells, func(h *handlers, r *http.Request) ([]delivery.DeadLetterJob, error) {
		return h.DeadLetters.Jobs(r.Context(), shell.Actor(r), recentJobs)
	})
	return deliverypages.Jobs{List: shell.Merged(got, func(a, b delivery.DeadLetterJob) int { return b.CreatedAt.Compare(a.CreatedAt) }, recentJobs)}, err
}

// joinGroups returns the groups of all databases, most dead letters first. Groups of one channel and
// error are one.
func joinGroups(got []*[]delivery.DeadLetterGroup) (all []delivery.DeadLetterGroup) {
	all = *got[0]
	for _, groups := range got[1:] {
		if groups == nil {
			continue
		}
		for _, g := range *groups {
			i := slices.IndexFunc(all, func(o delivery.DeadLetterGroup) bool { return o.Channel == g.Channel && o.Fingerprint == g.Fingerprint })
			if i < 0 {
				all = append(all, g)
				continue
			}
			o := &all[i]
			o.Dead += g.Dead
			if g.FirstAt.Before(o.FirstAt) {
				o.FirstAt = g.FirstAt
			}
			if g.LastAt.After(o.LastAt) {
				o.LastAt = g.LastAt
			}
		}
	}
	slices.SortStableFunc(all, func(a, b delivery.DeadLetterGroup) int { return cmp.Compare(b.Dead, a.Dead) })
	return all
}

// dryRun returns what a replay would do in all databases, at an equal share of the rate in each. A
// database without such dead letters takes no part.
func (h *handlers) dryRun(r *http.Request, f delivery.DeadLetterFilter, rate int) (sum delivery.Triage, taking []*handlers, share int, _ error) {
	share = rate
	for {
		got, err := shell.AcrossAll(h.Shell, r, h.cells, func(h *handlers, r *http.Request) (delivery.Triage, error) {
			return h.DeadLetters.DryRun(r.Context(), shell.Actor(r), f, share)
		})
		if err != nil {
			return sum, nil, 0, err
		}
		sum, taking = delivery.Triage{}, nil
		for n, t := range got {
			if sum = sum.Plus(*t); t.Total > 0 {
				taking = append(taking, h.cells[n])
			}
		}
		if taking == nil {
			taking = h.cells[:1]
		}
		each := (rate + len(taking) - 1) / len(taking)
		if share <= each {
			return sum, taking, share, nil
		}
		share = each
	}
}

// start begins the action in each database that has such dead letters. Repeating it with the same key
// begins nothing new.
func (h *handlers) start(r *http.Request, o delivery.DeadLetterOrder) error {
	taking := h.cells
	if len(taking) > 1 {
		var err error
		if _, taking, o.Rate, err = h.dryRun(r, o.Filter, o.Rate); err != nil {
			return err
		}
	}
	for _, of := range taking {
		if _, err := of.DeadLetters.Start(r.Context(), shell.Actor(r), o); err != nil {
			return err
		}
	}
	return nil
}

// refreshJobs renders the part of the page that is live while a job runs. When the last job ends,
// the page reloads, because its counts have changed.
func (h *handlers) refreshJobs(w http.ResponseWriter, r *http.Request, jobs deliverypages.Jobs) error {
	if !shell.Partial(r) {
		shell.Redirect(w, r, "/dead-letters")
		return nil
	}
	if !jobs.Running() {
		w.Header().Set("HX-Trigger", shell.ReloadEvent)
	}
	return h.Show(w, r, http.StatusOK, jobs.Card())
}

func (h *handlers) listSingleDeadLetters(w http.ResponseWriter, r *http.Request) error {
	typed, f, broken := h.typedFilter(r)
	if len(broken) > 0 {
		return h.refuseFilter(w, r, typed)
	}
	p := deliverypages.DeadLetterList{Filter: typed}
	found, paged, err := h.joinedLetters(r, typed, f).Page(r)
	if err != nil {
		return err
	}
	p.List, p.Paged = shell.Rows(found), paged
	p.Export = typed.URL("/dead-letters.csv")
	shell.NameEach(h.Shell, r, p.List, func(d delivery.DeadLetter) user.ID { return d.UserID })
	return h.Show(w, r, http.StatusOK, p.Page())
}

// A letterKey is the place of a dead letter in their list.
type letterKey struct {
	batch int64
	user  user.ID
}

// joinedLetters returns the dead letters of all databases that the filter selects.
func (h *handlers) joinedLetters(r *http.Request, typed pageparts.DeadFilter, f delivery.DeadLetterFilter) shell.List[shell.Found[delivery.DeadLetter], string] {
	return shell.Joined(h.Shell, r, h.cells, func(h *handlers, r *http.Request) shell.List[delivery.DeadLetter, letterKey] {
		return h.letters(r, typed, f)
	},
		func(a, b delivery.DeadLetter) int {
			return cmp.Or(a.FirstAt.Compare(b.FirstAt), cmp.Compare(a.BatchID, b.BatchID), cmp.Compare(a.UserID, b.UserID))
		})
}

// letters returns the dead letters of one database that the filter selects. The addresses of other
// pages are made from the filter, because an empty fingerprint is a condition.
func (h *handlers) letters(r *http.Request, typed pageparts.DeadFilter, f delivery.DeadLetterFilter) shell.List[delivery.DeadLetter, letterKey] {
	return shell.List[delivery.DeadLetter, letterKey]{Keys: shell.Keys[letterKey]{
		Param: "after",
		Text:  func(k letterKey) string { return fmt.Sprintf("%d_%d", k.batch, k.user) },
		Parse: func(s string) letterKey {
			batch, id, _ := strings.Cut(s, "_")
			b, err1 := strconv.ParseInt(batch, 10, 64)
			u, err2 := user.ParseID(id)
			if err1 != nil || err2 != nil || b <= 0 {
				return letterKey{}
			}
			return letterKey{b, u}
		},
		URL: func(key string) string {
			if key == "" {
				return typed.URL("/dead-letters/list")
			}
			return typed.URL("/dead-letters/list", [2]string{"after", key})
		},
	}, Read: func(after letterKey, limit int) ([]delivery.DeadLetter, error) {
		return h.DeadLetters.List(r.Context(), shell.Actor(r), f, after.batch, after.user, limit)
	}, KeyOf: func(d delivery.DeadLetter) letterKey { return letterKey{d.BatchID, d.UserID} }, File: shell.FileOf("dead-letters",
		[]string{"batch_id", "user_id", "channel", "template_id", "template_name", "reason", "detail", "attempts", "first_at", "last_at", "worthless_after",
			"kind", "campaign_id", "campaign_name", "provider"},
		func(d delivery.DeadLetter) []any {
			var campaignID any
			if d.Kind == delivery.KindCampaign {
				campaignID = d.OwnerID
			}
			return []any{d.BatchID, int64(d.UserID), d.Channel.String(), d.TemplateID, d.TemplateName, d.Reason, d.Detail, d.Attempts,
				d.FirstAt, d.LastAt, d.WorthlessAfter, string(d.Kind), campaignID, d.OwnerName, d.Provider}
		})}
}

// confirmReplay shows the dry run.
func (h *handlers) confirmReplay(w http.ResponseWriter, r *http.Request) error {
	return h.askReplay(w, r, http.StatusOK, nil)
}

func (h *handlers) askReplay(w http.ResponseWriter, r *http.Request, status int, refused []fault.Field) error {
	typed, f, broken := h.typedFilter(r)
	if len(broken) > 0 {
		return h.refuseFilter(w, r, typed)
	}
	rate, unread := typedRate(r)
	if refused == nil {
		refused = unread
	}
	t, _, _, err := h.dryRun(r, f, rate)
	if err != nil {
		return err
	}
	p := deliverypages.Replay{Filter: typed, Triage: t, Rate: r.FormValue("rate_per_second"), PerSecond: rate, Reason: shell.Reason(r), RequestKey: shell.RequestKey(r), Errors: refused}
	if r.FormValue("part") == "run" && shell.Partial(r) {
		return h.Show(w, r, http.StatusOK, p.Run())
	}
	if shell.Partial(r) {
		return h.Show(w, r, status, p.Fragment())
	}
	return h.Show(w, r, status, p.Page())
}

// typedRate reads the rate of the replay per second, or returns the error. The rate is 0 if the
// field is empty or refused.
func typedRate(r *http.Request) (int, []fault.Field) {
	text := r.FormValue("rate_per_second")
	if strings.TrimSpace(text) == "" {
		return 0, nil
	}
	rd := &shell.Reading{Values: map[string]string{"rate_per_second": text}}
	rate := int(rd.Number("rate_per_second"))
	if rd.Broken.List == nil {
		rd.Broken.List = shell.FieldsOf(delivery.CheckRate(rate))
	}
	if rd.Broken.List != nil {
		return 0, rd.Broken.List
	}
	return rate, nil
}

func (h *handlers) replay(w http.ResponseWriter, r *http.Request) error {
	typed, f, broken := h.typedFilter(r)
	if len(broken) > 0 {
		return h.refuseFilter(w, r, typed)
	}
	rate, broken := typedRate(r)
	if broken == nil {
		err := h.start(r, delivery.DeadLetterOrder{Action: delivery.Replay, Filter: f, Rate: rate,
			Reason: shell.Reason(r), RequestKey: shell.RequestKey(r)})
		if broken = shell.FieldsOf(err); broken == nil && err != nil {
			return err
		}
	}
	if broken != nil {
		return h.askReplay(w, r, http.StatusUnprocessableEntity, broken)
	}
	typed.Fingerprint = nil // its letters are on their way out of the list
	return h.Done(w, r, typed.URL("/dead-letters"), ui.Good, shell.Say(r, "letters.replaying"))
}

func (h *handlers) confirmDiscard(w http.ResponseWriter, r *http.Request) error {
	typed, f, broken := h.typedFilter(r)
	if len(broken) > 0 {
		return h.refuseFilter(w, r, typed)
	}
	t, _, _, err := h.dryRun(r, f, 0)
	if err != nil {
		return err
	}
	l := shell.Frame(r).Locale
	return h.Ask(w, r, http.StatusOK, pageparts.Confirmation{Active: "dead_letters", Crumbs: letterCrumbs(r), ConfirmProps: ui.ConfirmProps{
		Title: l.T("letters.discard.title"), Points: []string{l.N("letters.discard.1", t.Total), l.T("letters.discard.2"), l.T("letters.discard.3")},
		Action: "/dead-letters/discard", Cancel: typed.URL("/dead-letters"), Submit: l.T("letters.discard.do"), Kind: "danger",
		Hidden: append(typed.Pairs(), [2]string{"request_key", shell.RequestKey(r)})}})
}

func letterCrumbs(r *http.Request) []ui.Crumb {
	return []ui.Crumb{{Label: shell.Say(r, "nav.dead_letters"), URL: "/dead-letters"}}
}

func (h *handlers) discard(w http.ResponseWriter, r *http.Request) error {
	typed, f, broken := h.typedFilter(r)
	if len(broken) > 0 {
		return h.refuseFilter(w, r, typed)
	}
	if err := h.start(r, delivery.DeadLetterOrder{Action: delivery.Discard, Filter: f, Reason: shell.Reason(r),
		RequestKey: shell.RequestKey(r)}); err != nil {
		return err
	}
	typed.Fingerprint = nil
	return h.Done(w, r, typed.URL("/dead-letters"), ui.Good, shell.Say(r, "letters.discarding"))
}

// deadLetterJob returns the job in the address.
func (h *handlers) deadLetterJob(r *http.Request) (delivery.DeadLetterJob, error) {
	id, err := shell.PathID(r)
	if err != nil {
		return delivery.DeadLetterJob{}, err
	}
	list, err := h.DeadLetters.Jobs(r.Context(), shell.Actor(r), maxJobs)
	if err != nil {
		return delivery.DeadLetterJob{}, err
	}
	i := slices.IndexFunc(list, func(j delivery.DeadLetterJob) bool { return j.ID == id })
	if i < 0 {
		return delivery.DeadLetterJob{}, delivery.ErrNoDeadLetterJob
	}
	return list[i], nil
}

func (h *handlers) confirmCancelJob(w http.ResponseWriter, r *http.Request, j delivery.DeadLetterJob) error {
	l := shell.Frame(r).Locale
	return h.Ask(w, r, http.StatusOK, pageparts.Confirmation{Active: "dead_letters", Crumbs: letterCrumbs(r), ConfirmProps: ui.ConfirmProps{
		Title: l.T("letters.job.cancel.title"), Points: []string{l.T("letters.job.cancel.1", j.Done+j.Late+j.Sent, j.Total), l.T("letters.job.cancel.2")},
		Action: fmt.Sprintf("/dead-letters/jobs/%d/cancel", j.ID), Cancel: "/dead-letters", Submit: l.T("letters.job.cancel"), Kind: "danger", NoReason: true}})
}

func (h *handlers) cancelJob(w http.ResponseWriter, r *http.Request, j delivery.DeadLetterJob) error {
	if err := h.DeadLetters.Cancel(r.Context(), shell.Actor(r), j.ID); err != nil {
		return err
	}
	return h.Done(w, r, "/dead-letters", ui.Good, shell.Say(r, "letters.cancelled_now"))
}

// exportDeadLetters sends every dead letter that the filter selects.
func (h *handlers) exportDeadLetters(w http.ResponseWriter, r *http.Request) error {
	typed, f, broken := h.typedFilter(r)
	if len(broken) > 0 {
		return &fault.Fields{List: broken}
	}
	return h.joinedLetters(r, typed, f).Send(h.Shell, w, r)
}
