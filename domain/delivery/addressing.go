package delivery

import (
	"cmp"
	"slices"

	"dropbell/domain/user"
)

// within reports whether all of the ascending ids are in others, which is ascending too.
func within(ids, others []user.ID) bool {
	for _, id := range ids {
		for len(others) > 0 && others[0] < id {
			others = others[1:]
		}
		if len(others) == 0 || others[0] != id {
			return false
		}
	}
	return true
}

// A composer makes the messages of one run.
type composer struct {
	batch   *Batch
	render  *Renderer
	journal Journal
	// waited are the users whose mails were kept back before; see [Batch.paced].
	waited       map[user.ID]bool
	verifiedOnly bool                               // [Service.VerifiedOnly]
	optOutURL    func(id user.ID, c Channel) string // [Service.OptOutURL]
	crashes      *crashReports
}

// addressed is address for a chunk in which building a message may panic. It halves the chunk
// until the user whose message panics is alone; the messages of the other users are made.
func (p *composer) addressed(ids []user.ID) (c chunkResult) {
	defer func() {
		crash := recover()
		if crash == nil {
			return
		}
		cause := crashed(crash)
		p.crashes.report(cause.Crash)
		if len(ids) == 1 {
			c = chunkResult{unmade: []unmade{{ids[0], cause}}}
			return
		}
		c = p.addressed(ids[:len(ids)/2])
		rest := p.addressed(ids[len(ids)/2:])
		c.messages = append(c.messages, rest.messages...)
		c.unreachable = append(c.unreachable, rest.unreachable...)
		c.suppressed = append(c.suppressed, rest.suppressed...)
		c.unverified = append(c.unverified, rest.unverified...)
		c.unmade = append(c.unmade, rest.unmade...)
	}()
	return p.address(ids)
}

// address makes the messages of one chunk. Users without a contact for the channel get none.
func (p *composer) address(ids []user.ID) chunkResult {
	c := chunkResult{messages: make([]Message, 0, len(ids))}
	contents := contents{render: p.render}
	var strangers []user.User // known by nothing but their ids
	known := p.batch.Known
	at, _ := slices.BinarySearchFunc(known, ids[0], func(u user.User, id user.ID) int { return cmp.Compare(u.ID, id) })
	for _, id := range ids {
		for at < len(known) && known[at].ID < id {
			at++
		}
		var u *user.User
		if at < len(known) && known[at].ID == id {
			u = &known[at]
		} else {
			if strangers == nil {
				strangers = make([]user.User, 0, len(ids)) // never grows: pointers into it stay good
			}
			strangers = append(strangers, user.User{ID: id})
			u = &strangers[len(strangers)-1]
		}
		if !p.batch.Channel.Reaches(u) {
			c.unreachable = append(c.unreachable, id)
			continue
		}
		if u.Suppressed {
			c.suppressed = append(c.suppressed, id)
			continue
		}
		if p.verifiedOnly && p.batch.Channel == SMS && u.PhoneVerifiedAt.IsZero() {
			c.unverified = append(c.unverified, id)
			continue
		}
		m := Message{To: u, Channel: p.batch.Channel, Subject: &p.batch.Subject, OptOutURL: p.optOut(id), Until: p.batch.WorthlessAfter, Waited: p.waited[id]}
		if m.Channel != App { // which shows what it finds in its own way
			m.Content, m.Journal = contents.of(u), p.journal
			m.Consented = p.batch.Consents[id]
			if m.Channel == SMS || m.Channel == WebPush && u.OneTime() {
				m.Values = func() map[string]string { return p.render.Values(*u) }
			}
		}
		c.messages = append(c.messages, m)
	}
	return c
}

// contents caches the contents of the last eight readers. The users of one chunk share two or
// three languages and zones, and comparing languages and zones is cheaper than a lookup in a
// shared table.
type contents struct {
	render *Renderer
	recent [8]struct {
		locale, zone string
		content      *Content
	}
	n int
}

func (c *contents) of(u *user.User) *Content {
	if c.render.varies {
		return c.render.For(*u)
	}
	for i := range min(c.n, len(c.recent)) {
		if k := &c.recent[i]; k.locale == u.Locale && k.zone == u.Timezone {
			return k.content
		}
	}
	k := &c.recent[c.n%len(c.recent)]
	c.n++
	k.locale, k.zone, k.content = u.Locale, u.Timezone, c.render.For(*u)
	return k.content
}

// optOut returns the address that a mail contains for turning mails off; "" = none. An SMS has
// no room for an address, and users turn the other channels off in the app, browser or endpoint
// that shows them.
func (p *composer) optOut(id user.ID) string {
	if p.optOutURL == nil || p.batch.Channel != Email || p.batch.Subject.Kind == KindTest {
		return ""
	}
	return p.optOutURL(id, p.batch.Channel)
}
