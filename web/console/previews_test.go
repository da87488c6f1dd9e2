package console

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"
	"golang.org/x/text/encoding/simplifiedchinese"

	"dropbell/adapters/postgres"
	tables "dropbell/adapters/sheet"
	"dropbell/domain/job"
	"dropbell/domain/staff"
)

// openings counts how often files are opened.
type openings struct {
	job.Tables
	opened int
}

func (c *openings) OpenTable(ctx context.Context, id int64, how job.Reading, at json.RawMessage) (job.Rows, error) {
	c.opened++
	return c.Tables.OpenTable(ctx, id, how, at)
}

// workbook has two sheets with rows; the first one is hidden.
func workbook(t *testing.T) string {
	f := excelize.NewFile()
	for _, sheet := range []string{"Members", "Former"} {
		if _, err := f.NewSheet(sheet); err != nil {
			t.Fatal(err)
		}
	}
	for cell, v := range map[string]any{"Sheet1!A1": "secret", "Members!A1": "id", "Members!B1": "name", "Members!A2": 1001, "Members!B2": "Ann", "Former!A1": "id", "Former!B1": "name",
		"Former!A2": 2001, "Former!B2": "Zoe", "Former!A3": true, "Former!B3": "Yes"} {
		sheet, at, _ := strings.Cut(cell, "!")
		if err := f.SetCellValue(sheet, at, v); err != nil {
			t.Fatal(err)
		}
	}
	f.SetActiveSheet(1)
	if err := f.SetSheetVisible("Sheet1", false); err != nil {
		t.Fatal(err)
	}
	b, err := f.WriteToBuffer()
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The page of a workbook reads the file no more; the sheet that staff choose is
// the one that is checked and imported, and a TRUE cell is no user.
func TestImportChosenSheet(t *testing.T) {
	files := &openings{}
	g := newRig(t)
	files.Tables = g.Files.Tables
	g.Files.Tables = files
	b := g.as(staff.Marketer)
	start := b.upload("/users/import", "members.xlsx", workbook(t)).is(303).header.Get("Location")
	opened := files.opened
	b.get(start).is(200).has("Sheet of the workbook", "Members", "Former", "Ann").hasNot("Zoe")
	b.get(start+"?sheet=3").is(200).has("Zoe", `name="sheet" value="3"`).hasNot("Ann")
	if files.opened != opened {
		t.Errorf("the page opened the workbook %d times", files.opened-opened)
	}
	check := b.post(start, url.Values{"sheet": {"3"}, "target0": {"id"}, "target1": {"name"}}).is(303).header.Get("Location")
	g.workPeople()
	b.get(check).is(200).has("TRUE | Yes")
	id := strings.TrimPrefix(check, "/jobs/")
	b.get(start+"?check="+id).is(200).has("Zoe", `name="sheet" value="3"`)
	b.post(start+"/apply?check="+id, nil).is(303)
	g.workPeople()
	if n := g.number(`select count(*) from users where (id, name) = (2001, 'Zoe')`); n != 1 || g.number(`select count(*) from users`) != 1 {
		t.Errorf("%d users are as the sheet says", n)
	}
	b.get(start + "?sheet=99").is(422)
}

// CSV as Excel saves it in China is imported whole, and staff can say that it
// is something else.
func TestImportGBK(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Marketer)
	raw, err := simplifiedchinese.GBK.NewEncoder().String("用户编号,姓名\n1001,王小明\n1002,李婷\n")
	g.must(err)
	start := b.upload("/users/import", "members.csv", raw).is(303).header.Get("Location")
	b.get(start).is(200).has("用户编号", "王小明", `<option value="gb18030" selected>`)
	b.get(start + "?encoding=windows-1252").is(200).has(`<option value="windows-1252" selected>`).hasNot("王小明")
	check := b.post(start, url.Values{"encoding": {"gb18030"}, "target0": {"id"}, "target1": {"name"}}).is(303).header.Get("Location")
	g.workPeople()
	b.post(start+"/apply?check="+strings.TrimPrefix(check, "/jobs/"), nil).is(303)
	g.workPeople()
	if n := g.number(`select count(*) from users where (id, name) in ((1001, '王小明'), (1002, '李婷'))`); n != 2 {
		t.Errorf("%d users are as the file says", n)
	}
}

// What is refused does not stay stored, whichever form it came through.
func TestRefusedFilesAreRemoved(t *testing.T) {
	g := newRig(t)
	grants := "/templates/" + strconv.FormatInt(g.friends().ID, 10) + "/grants/new"
	b := g.as(staff.Marketer)
	var bomb bytes.Buffer
	z := zip.NewWriter(&bomb)
	w, err := z.Create("xl/media/image1.bin")
	g.must(err)
	_, err = w.Write(make([]byte, 20<<20))
	g.must(err)
	g.must(z.Close())
	for _, form := range []string{"/users/import", "/segments/lists/new", grants} {
		b.upload(form, "bomb.xlsx", bomb.String(), "name", "Fair").is(422).has("too large when unpacked")
	}
	if n := g.number(`select count(*) from uploads`); n != 0 {
		t.Errorf("%d refused files stay stored", n)
	}
}

// While one workbook is read, others wait, and are told when that takes too
// long; other files are read meanwhile.
func TestOneWorkbookAtATime(t *testing.T) {
	g := newRig(t)
	one := tables.Tables{Open: postgres.NewUploads(g.db).OpenUpload, Turns: tables.NewTurns(20 * time.Millisecond)}
	g.Files.Tables = one
	b := g.as(staff.Marketer)
	file := workbook(t)
	u, err := postgres.NewUploads(g.db).SaveUpload(t.Context(), "x.xlsx", strings.NewReader(file), 1<<20, staff.System())
	g.must(err)
	held, err := one.OpenTable(t.Context(), u.ID, job.Reading{}, nil)
	g.must(err)
	if a := b.upload("/users/import", "members.xlsx", file).is(503).has("another workbook is being read"); a.header.Get("Retry-After") == "" {
		t.Error("nobody says when to try again")
	}
	b.upload("/users/import", "members.csv", "id,name\n1,x\n").is(303)
	g.must(held.Close())
	b.upload("/users/import", "members.xlsx", file).is(303)
	if n := g.number(`select count(*) from uploads`); n != 3 {
		t.Errorf("%d files are stored, want those that were taken", n)
	}
}
