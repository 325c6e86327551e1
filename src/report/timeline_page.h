/* timeline_page.h — the fixed parts of the timeline page. */
#ifndef RC_REPORT_TIMELINE_PAGE_H
#define RC_REPORT_TIMELINE_PAGE_H

extern const char rc_timeline_page_head[];  /* up to the title's text */
extern const char rc_timeline_page_style[]; /* from there to the body */
/* Lines after the data, to the end; NULL ends them. */
extern const char *const rc_timeline_page_script[];

#endif
