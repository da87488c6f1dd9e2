package campaigns

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"dropbell/domain/message"
	campaignpages "dropbell/views/pages/campaigns"
)

// typedBlocks adds the typed blocks of every text to v. Their number is bounded by one more than
// [message.MaxBlocks], which saving refuses.
func typedBlocks(r *http.Request, v map[string]string) {
	typed := func(name string) string {
		return strings.TrimSpace(strings.ReplaceAll(r.PostFormValue(name), "\r\n", "\n"))
	}
	for _, of := range campaignpages.Places(v) {
		var list []message.Block
		for i := 0; i <= message.MaxBlocks && r.PostForm.Has(of.Block(i, "type")); i++ {
			list = append(list, message.Block{Type: message.BlockType(typed(of.Block(i, "type"))), Text: typed(of.Block(i, "text")), URL: typed(of.Block(i, "url"))})
		}
		campaignpages.SetBlocks(v, of, list)
		v[of.Field("new_block")] = typed(of.Field("new_block"))
	}
}

// choosePictures puts the pictures chosen from the library into the image blocks of the form. A
// description that was typed stays.
func (h *handlers) choosePictures(r *http.Request, f *campaignpages.CampaignForm) (err error) {
	shop, _ := strconv.ParseInt(f.Values["shop"], 10, 64) // without a shop there is no library
	if f.Pictures, err = h.Messages.Pictures(r, shop); err != nil {
		return err
	}
	for _, of := range campaignpages.Places(f.Values) {
		list := campaignpages.BlocksIn(f.Values, of)
		for i, b := range list {
			chosen, ok := f.Pictures.Picked(r.PostFormValue(of.Block(i, "picture")))
			if ok && b.Type == message.Image {
				list[i].URL, list[i].Text = chosen.Address, cmp.Or(b.Text, chosen.Alt)
			}
		}
		campaignpages.SetBlocks(f.Values, of, list)
	}
	return nil
}

// changeBlocks applies a button to the blocks of a text: "a:start", "b0:add", "a:up-1", "a:down-1",
// "a:drop-1". The first blocks of a text are made of its title and body.
func changeBlocks(v map[string]string, do string) {
	place, do, _ := strings.Cut(do, ":")
	of := campaignpages.TextPlace(place)
	i := slices.Index(campaignpages.Places(v), of)
	if i < 0 {
		return
	}
	list := campaignpages.BlocksIn(v, of)
	if do == "start" && len(list) == 0 {
		title, body := textFields(of)
		list = message.CampaignMail("", v[title], v[body]).Blocks
		v[body] = ""
	} else {
		list = message.Rearranged(list, do, v[of.Field("new_block")])
	}
	campaignpages.SetBlocks(v, of, list[:min(len(list), message.MaxBlocks)])
}

// textFields names the inputs of the title and the body of a place.
func textFields(of campaignpages.TextPlace) (title, body string) {
	second := strings.HasPrefix(string(of), "b")
	title, body = campaignpages.LanguageTitle, campaignpages.LanguageBody
	if second {
		title, body = campaignpages.LanguageTitleB, campaignpages.LanguageBodyB
	}
	if i, err := strconv.Atoi(string(of)[1:]); err == nil {
		return campaignpages.LanguageField(i, title), campaignpages.LanguageField(i, body)
	}
	return title, body
}

// blockFieldOf returns the input that a rule about the blocks concerns. rest is the name of the rule
// after "blocks.": a language, the number of a block from 1, and "url".
func blockFieldOf(rest string, second bool, tags []string) string {
	version, language := 0, -1
	if second {
		version = 1
	}
	if tag, after, _ := strings.Cut(rest, "."); slices.Contains(tags, tag) && tag != "" {
		language, rest = slices.Index(tags, tag), after
	}
	of := campaignpages.TextPlaceOf(version, language)
	number, part, _ := strings.Cut(rest, ".")
	i, err := strconv.Atoi(number)
	switch {
	case err != nil:
		return of.Field("blocks")
	case part == "":
		part = "text"
	}
	return of.Block(i-1, part)
}
