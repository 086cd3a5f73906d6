# A picture of bench/out/sched/speed.json: mean cost of a decision against nodes, both logarithmic.
def lg: log10;
map(select(.devices == 8 * .nodes))
| (map(.nodes) | [min, max] | map(lg)) as [$n0, $n1]
| ([.[] | .mean_us, .full_scan.mean_us] | [(min | lg | floor), (max | lg | ceil)]) as [$y0, $y1]
| def x: 80 + (. - $n0) / ($n1 - $n0) * 480;
  def y: 320 - (. - $y0) / ($y1 - $y0) * 270;
  def line($key; $colour; $name): sort_by(.nodes) | map([(.nodes | lg | x), (getpath($key) | lg | y)])
    | "<polyline fill='none' stroke='\($colour)' stroke-width='2' points='\(map("\(.[0]),\(.[1])") | join(" "))'/>",
      (.[] | "<circle cx='\(.[0])' cy='\(.[1])' r='4' fill='\($colour)'/>"),
      "<text x='\(.[-1][0] + 10)' y='\(.[-1][1] + 4)' fill='\($colour)'>\($name)</text>";
"<svg xmlns='http://www.w3.org/2000/svg' width='680' height='370' font-family='sans-serif' font-size='12'>",
"<rect width='680' height='370' fill='white'/>",
"<text x='10' y='20' font-size='14'>Mean cost of a decision, microseconds, against the nodes of the pool</text>",
(range($y0; $y1 + 1) | "<line x1='80' x2='560' y1='\(y)' y2='\(y)' stroke='#ddd'/><text x='70' y='\(y + 4)' text-anchor='end' fill='#555'>\(pow(10; .))</text>"),
(map(.nodes) | sort | .[] | "<text x='\(lg | x)' y='340' text-anchor='middle' fill='#555'>\(.)</text>"),
line(["full_scan", "mean_us"]; "#888"; "full scan"), line(["mean_us"]; "#1b6ca8"; "classes"),
"</svg>"
