package message

// A Draft is a text that is being written. Previews and tests show it before it is saved.
type Draft struct {
	// Shop is the shop whose text it is, if it is about no drop.
	Shop     int64  `json:"shop,omitempty"`
	Kind     Kind   `json:"kind"`
	Language string `json:"language"`
	// Text has a title and a body, and perhaps the blocks of a mail, if it is a campaign's, whatever
	// the channel.
	Text Text `json:"text"`
	// About has the facts of a drop that is being written too; nil = the facts of the stored
	// drop.
	About *Facts `json:"about,omitempty"`
}

// compile compiles the draft like its message. A campaign has one Markdown text for all channels.
func (d Draft) compile(c Channel, brand Shop) *Compiled {
	if d.Kind == Campaign {
		return CompileCampaign(c, d.Language, d.Text, brand)
	}
	return Compile(Key{d.Kind, c, d.Language}, d.Text, brand)
}

// Render returns the message with the draft's text about f over the channel to one reader. It is
// made like the message itself. f.Kind is the kind of the draft.
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
