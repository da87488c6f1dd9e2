package message

// A Draft is a text that is being written, which previews and tests show before
// it is saved.
type Draft struct {
	// Shop is the shop whose text it is, if it is about no drop.
	Shop     int64  `json:"shop,omitempty"`
	Kind     Kind   `json:"kind"`
	Language string `json:"language"`
	// Text has a title and a body if it is a campaign's, whatever the channel.
	Text Text `json:"text"`
	// About is what the message says of a drop that is being written too; nil = of
	// the place's.
	About *Facts `json:"about,omitempty"`
}

// compile compiles the draft as its message is compiled. A campaign has one text for
// all channels, in Markdown.
func (d Draft) compile(c Channel, brand Shop) *Compiled {
	if d.Kind == Campaign {
		return CompileCampaign(c, d.Language, d.Text.Title, d.Text.Body, brand)
	}
	return Compile(Key{d.Kind, c, d.Language}, d.Text, brand)
}

// Render returns what the draft says about f over the channel to one reader; it
// is made like the message itself. f.Kind is that of the draft.
func (d Draft) Render(book *Book, f Facts, c Channel, r Reader) Content {
	compiled := d.compile(c, book.Settings())
	if d.About != nil {
		f = *d.About
	}
	f.Kind = d.Kind
	if d.Kind == Cancelled {
		f.Link = ""
	}
	f.Description = book.Description(d.Language, f.Description)
	return compiled.Bind(f, book.Name(d.Language, f.Drop), zoneOrUTC(r.Zone), false).Content(r.Name, f.Link)
}
